# Installs the build into a fresh prefix, builds the host project of this folder against it, runs the host and the
# installed command. Called with -D BUILD=<build folder> -D COUNTS=<file for "<passed> <failed>">.
set(work ${BUILD}/install-test)
file(REMOVE_RECURSE ${work})
file(WRITE ${COUNTS} "0 1\n") # until everything below has passed

set(EXAMPLES ${CMAKE_CURRENT_LIST_DIR}/../../examples/embed)

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE out ERROR_VARIABLE out)
  if(NOT status EQUAL 0)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "${command}\nended with ${status}:\n${out}")
  endif()
  set(output "${out}" PARENT_SCOPE)
endfunction()

run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${work}/prefix)
run(${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR} -B ${work}/host -G Ninja -DCMAKE_PREFIX_PATH=${work}/prefix
  -DCMAKE_BUILD_TYPE=Release "-DCMAKE_CXX_FLAGS=${FLAGS}")
run(${CMAKE_COMMAND} --build ${work}/host)
run(${work}/host/host)
file(GLOB_RECURSE generator ${work}/prefix/*/libslope_codegen.so)
# Under a sanitizer it is the sanitizer's dlopen that looks, which does not know the run path of the host.
if(generator AND NOT FLAGS MATCHES "sanitize")
  string(FIND "${output}" "${generator}\n" at)
  if(at EQUAL -1)
    message(FATAL_ERROR "the host did not load the code generator of its own package, ${generator}:\n${output}")
  endif()
endif()

# The examples of hosts are projects like theirs.
foreach(example hello calibrate c game threads plugin mpi untrusted)
  run(${CMAKE_COMMAND} -S ${EXAMPLES}/${example} -B ${work}/${example} -G Ninja
    -DCMAKE_PREFIX_PATH=${work}/prefix -DCMAKE_BUILD_TYPE=Release "-DCMAKE_CXX_FLAGS=${FLAGS}" "-DCMAKE_C_FLAGS=${FLAGS}")
  run(${CMAKE_COMMAND} --build ${work}/${example})
endforeach()
run(${work}/hello/hello)
if(NOT output STREQUAL "bump(0.5, 2) = 0.939413, slope -0.234853 along x, 0.058713 along the width\n")
  message(FATAL_ERROR "examples/embed/hello printed: ${output}")
endif()
run(${work}/calibrate/calibrate)
run(${work}/c/spring)
run(${work}/game/game)
run(${work}/threads/threads)
run(${work}/plugin/plugin)
# A sanitizer makes system calls of its own.
if(NOT FLAGS MATCHES "sanitize")
  run(${work}/untrusted/untrusted)
  foreach(line "=> 385 (12.0,)" "=> [4.0, 3.0] a-b-" "out of time" "out of memory" "recursion is too deep" "not permitted: reading"
      "println(breach())\n=> ENDED BY THE SYSTEM: Bad system call")
    string(FIND "${output}" "${line}" at)
    if(at EQUAL -1)
      message(FATAL_ERROR "examples/embed/untrusted did not print \"${line}\":\n${output}")
    endif()
  endforeach()
endif()
if(NOT FLAGS MATCHES "sanitize") # the launcher's own leaks are not ours
  foreach(ranks 1 4)
    run(${CMAKE_COMMAND} -E env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_btl_vader_single_copy_mechanism=none
      mpirun --oversubscribe -n ${ranks} ${work}/mpi/ranks)
    set(ranks_${ranks} "${output}")
  endforeach()
  if(NOT ranks_1 STREQUAL ranks_4)
    message(FATAL_ERROR "examples/embed/mpi: one rank printed ${ranks_1}, four printed ${ranks_4}")
  endif()
endif()

# Hosts without CMake.
file(GLOB_RECURSE pc ${work}/prefix/*/slope.pc)
get_filename_component(pc "${pc}" DIRECTORY)
function(flags_of module)
  execute_process(COMMAND ${CMAKE_COMMAND} -E env PKG_CONFIG_PATH=${pc} pkg-config --cflags --libs ${module}
    OUTPUT_VARIABLE out RESULT_VARIABLE status OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "pkg-config does not find ${module} in ${pc}")
  endif()
  separate_arguments(out)
  set(found "${out}" PARENT_SCOPE)
endfunction()
separate_arguments(own_flags UNIX_COMMAND "${FLAGS}")
flags_of(slope)
run(c++ ${own_flags} ${EXAMPLES}/hello/main.cpp -o ${work}/hello-pc ${found})
run(${work}/hello-pc)
flags_of(slope-c)
run(cc ${own_flags} ${EXAMPLES}/c/main.c -o ${work}/spring-pc ${found} -lm)
run(${CMAKE_COMMAND} -E env LD_LIBRARY_PATH=${pc}/.. ${work}/spring-pc)
if(NOT FLAGS MATCHES "sanitize") # the sanitizers must come first in a process, and python does not bring them
  file(GLOB shared ${work}/prefix/lib*/libslope.so ${work}/prefix/lib/*/libslope.so)
  run(/usr/bin/python3 ${EXAMPLES}/python/logistic.py ${shared})
endif()

run(${work}/prefix/bin/slope --tier=${TIER} -E "1 + 1")
if(NOT output STREQUAL "2\n")
  message(FATAL_ERROR "slope -E '1 + 1' printed: ${output}")
endif()
# The machine code of the library lies where the installed command looks for it, and is that of this build.
file(GLOB_RECURSE code ${work}/prefix/*/slope_library.code)
if(code)
  run(${CMAKE_COMMAND} -E env SLOPE_CACHE=off SLOPE_DUMP=cache
    ${work}/prefix/bin/slope --tier=compile -e "foreach(i -> print(devnull, i), 1:3)")
  if(NOT output MATCHES "; cache found ")
    message(FATAL_ERROR "the installed command found no machine code in ${code}:\n${output}")
  endif()
elseif(EXISTS ${BUILD}/lib/slope_library.code)
  message(FATAL_ERROR "slope_library.code was not installed")
endif()
file(WRITE ${COUNTS} "1 0\n")
