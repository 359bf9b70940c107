# Runs one script of the training, with -DSLOPE=command -DSCRIPT=file -DCACHE=folder -DLIST=file for what it needed. What
# programs call once gets hot in none: scripts of that name are compiled before they are called.
set(tier auto)
if(SCRIPT MATCHES "/once_[a-z_]*\\.slope$")
  set(tier compile)
endif()
execute_process(
  COMMAND ${CMAKE_COMMAND} -E env SLOPE_CACHE=${CACHE} SLOPE_DUMP=cache SLOPE_LIBRARY_CODE=off SLOPE_QUICK_CODE=off
    ${SLOPE} --tier=${tier} --compile-threads=0 ${SCRIPT}
  OUTPUT_QUIET ERROR_VARIABLE told RESULT_VARIABLE status TIMEOUT 600)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "${SCRIPT} ended with ${status}:\n${told}")
endif()
file(WRITE ${LIST} "${told}")
