# GDB sees compiled functions, with names, lines and whole stacks, and perf gets a jitdump file. Called with
# -D SLOPE=<the command> -D WORK=<folder> -D COUNTS=<file for "<passed> <failed>"> -D GDB=<gdb, or empty>.
set(program ${CMAKE_CURRENT_LIST_DIR}/program.slope)
set(passed 0)
file(WRITE ${COUNTS} "0 1\n") # until everything below has passed
file(REMOVE_RECURSE ${WORK})
file(MAKE_DIRECTORY ${WORK})

function(expect text pattern what)
  if(NOT text MATCHES "${pattern}")
    message(FATAL_ERROR "${what}: no match of\n  ${pattern}\nin\n${text}")
  endif()
endfunction()

# The file goes into <folder>/.debug/jit/….
execute_process(COMMAND ${CMAKE_COMMAND} -E env SLOPE_SHOW_CODE=perf JITDUMPDIR=${WORK}
  ${SLOPE} --tier=compile ${program} OUTPUT_VARIABLE out ERROR_VARIABLE err RESULT_VARIABLE status)
expect("${status}|${out}" "^0\\|inner 16.0\n18.0\n$" "with perf told: ${err}")
file(GLOB_RECURSE dumps ${WORK}/*.dump)
list(LENGTH dumps count)
if(NOT count EQUAL 1)
  message(FATAL_ERROR "expected one jitdump file, found: ${dumps}")
endif()
file(STRINGS ${dumps} names REGEX "inner#|outer#|program.slope")
expect("${names}" "inner#" "names in the jitdump file")
expect("${names}" "program.slope" "lines in the jitdump file")
math(EXPR passed "${passed} + 1")

if(GDB)
  execute_process(COMMAND ${CMAKE_COMMAND} -E env SLOPE_SHOW_CODE=gdb ${GDB} -nx -batch
    -ex "set breakpoint pending on" -ex "set confirm off" -ex "break inner" -ex run -ex backtrace -ex continue
    --args ${SLOPE} --tier=compile ${program}
    OUTPUT_VARIABLE out ERROR_VARIABLE err RESULT_VARIABLE status TIMEOUT 120)
  if("${out}${err}" MATCHES "ptrace: Operation not permitted|Could not trace the inferior")
    message(STATUS "GDB may not trace here: not tested")
  else()
    expect("${out}" "#0 [^\n]*inner[^\n]*program.slope:[345]" "GDB's stack: ${err}")
    expect("${out}" "#[0-9]+ [^\n]*outer[^\n]*program.slope:9" "GDB's stack: ${err}")
    expect("${out}" "#[0-9]+ [^\n]* slope::Pipeline::run" "GDB's stack reaches the engine and the host: ${err}")
    math(EXPR passed "${passed} + 1")
  endif()
else()
  message(STATUS "gdb is not installed: only the jitdump file was tested")
endif()
file(WRITE ${COUNTS} "${passed} 0\n")
