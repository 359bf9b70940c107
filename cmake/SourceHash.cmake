# cmake -DOUTPUT=file.hpp -DNAME=name -P SourceHash.cmake file…: a header with one constant of that name, a hash of the
# files' contents.
set(all "")
set(first_file OFF)
math(EXPR last "${CMAKE_ARGC} - 1")
foreach(i RANGE 1 ${last})
  set(argument "${CMAKE_ARGV${i}}")
  if(first_file)
    file(SHA256 "${argument}" hash)
    string(APPEND all ${hash})
  elseif(argument MATCHES "SourceHash\\.cmake$")
    set(first_file ON)
  endif()
endforeach()
string(SHA256 hash "${all}")
string(SUBSTRING ${hash} 0 16 hash)
file(WRITE ${OUTPUT} "#pragma once

#include <cstdint>

namespace slope {

inline constexpr std::uint64_t ${NAME} = 0x${hash};

}  // namespace slope
")
