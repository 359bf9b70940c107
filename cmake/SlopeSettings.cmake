# Compiler and linker settings of every target.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

# The layers are linked into the command, into a host's library and into the code generator's shared object.
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
# A host may carry another Slope, fmt or LLVM: nothing is exported but what a public header marks.
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)

# The command finds the code generator in ../lib, in the build tree as in an installation.
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Release or Debug" FORCE)
endif()
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
set(CMAKE_C_FLAGS_RELEASE "-O2 -DNDEBUG")
# Optimised a little, or the tests under the sanitizers take minutes; line tables are enough for their reports.
set(CMAKE_CXX_FLAGS_DEBUG "-O1 -g1 -D_GLIBCXX_ASSERTIONS")
set(CMAKE_C_FLAGS_DEBUG "-O1 -g1")

add_compile_options(-Wall -Wextra -Werror)

if(SLOPE_SANITIZE)
  # vptr wants RTTI of every class it meets, also of LLVM's.
  set(slope_sanitizers -fsanitize=address,undefined -fno-sanitize=vptr)
  if(SLOPE_SANITIZE STREQUAL "thread")
    set(slope_sanitizers -fsanitize=thread)
  endif()
  add_compile_options(${slope_sanitizers} -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
  add_link_options(${slope_sanitizers})
  # GCC's instrumentation hides initialisations from this warning, in the standard library's headers too.
  add_compile_options(-Wno-maybe-uninitialized)
endif()

find_program(SLOPE_LLD ld.lld)
mark_as_advanced(SLOPE_LLD)
if(SLOPE_LLD)
  add_link_options(-fuse-ld=lld)
endif()
add_link_options(-Wl,--as-needed -Wl,--gc-sections)
