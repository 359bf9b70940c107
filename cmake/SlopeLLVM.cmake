# The interface target slope_llvm: LLVM 19's headers and the libraries of the components below; slope_llvm_cross: those of
# more machines.
#
# llvm-config answers at once; LLVMConfig.cmake declares some two hundred targets and searches for packages that these
# components do not need.
find_program(SLOPE_LLVM_CONFIG NAMES llvm-config-19 REQUIRED)
mark_as_advanced(SLOPE_LLVM_CONFIG)

set(slope_llvm_components core orcjit jitlink orctargetprocess orcdebugging debuginfodwarf native passes asmparser bitreader bitwriter)
if(SLOPE_LLVM_SHARED)
  set(slope_llvm_kind --link-shared)
else()
  set(slope_llvm_kind --link-static)
endif()

execute_process(COMMAND ${SLOPE_LLVM_CONFIG} --includedir
  OUTPUT_VARIABLE slope_llvm_includes OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
function(slope_llvm_libraries result)
  execute_process(COMMAND ${SLOPE_LLVM_CONFIG} ${slope_llvm_kind} --libfiles ${ARGN}
    OUTPUT_VARIABLE found OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  separate_arguments(found)
  set(${result} ${found} PARENT_SCOPE)
endfunction()
slope_llvm_libraries(slope_llvm_libraries ${slope_llvm_components})
slope_llvm_libraries(slope_llvm_cross_libraries x86codegen aarch64codegen)

add_library(slope_llvm INTERFACE)
target_include_directories(slope_llvm SYSTEM INTERFACE ${slope_llvm_includes})
target_link_libraries(slope_llvm INTERFACE ${slope_llvm_libraries})
# The code generators of the machines for which `slope build --target` makes objects.
add_library(slope_llvm_cross INTERFACE)
target_link_libraries(slope_llvm_cross INTERFACE ${slope_llvm_cross_libraries} slope_llvm)
if(NOT SLOPE_LLVM_SHARED)
  find_package(Threads REQUIRED)
  find_library(SLOPE_ZLIB z REQUIRED)
  find_library(SLOPE_ZSTD zstd REQUIRED)
  mark_as_advanced(SLOPE_ZLIB SLOPE_ZSTD)
  target_link_libraries(slope_llvm INTERFACE ${SLOPE_ZLIB} ${SLOPE_ZSTD} Threads::Threads ${CMAKE_DL_LIBS} m)
endif()
