# slope_add_room(<room> [LIBRARIES <library>...] [EXCLUDE <file>...] [WITH <folder>...])
#
# The static library slope_<room> (lang/ir: slope_ir, stdlib/native: slope_stdlib_native) of all sources in the current
# folder and in the folders below it that are no rooms. Whom it depends on stands in cmake/rooms.txt. LIBRARIES are what
# it uses from outside; they are also noted in the global property SLOPE_ROOM_LIBRARIES, because embed/ makes the one
# installed archive, which needs them all. Its sources are in the property SLOPE_ROOM_TARGETS.
set(slope_rooms_file ${PROJECT_SOURCE_DIR}/cmake/rooms.txt)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${slope_rooms_file})

# Batches of sources that include much of the same, when SLOPE_UNITY says so.
function(slope_compile_in_batches target)
  if(SLOPE_UNITY)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
    # GCC takes an included source for a header, whose classes may not have members of an anonymous namespace's types.
    target_compile_options(${target} PRIVATE -Wno-subobject-linkage)
  endif()
endfunction()

function(slope_room_target room result)
  if(room STREQUAL "codegen")
    set(${result} slope_codegen_loader PARENT_SCOPE)  # the engine's side of it
  elseif(room STREQUAL "stdlib")
    set(${result} slope_stdlib_text PARENT_SCOPE)
  elseif(room STREQUAL "include/slope")
    set(${result} "" PARENT_SCOPE)
  else()
    string(REGEX REPLACE "^lang/" "" name ${room})
    string(REPLACE "/" "_" name ${name})
    set(${result} slope_${name} PARENT_SCOPE)
  endif()
endfunction()

# The libraries of the rooms that `room` may see.
function(slope_room_depends room result)
  file(STRINGS ${slope_rooms_file} lines REGEX "^${room} +\\|")
  if(NOT lines)
    message(FATAL_ERROR "cmake/rooms.txt has no room ${room}")
  endif()
  string(REGEX REPLACE "^.*\\| *([^|]*)$" "\\1" seen "${lines}")
  separate_arguments(seen)
  set(targets "")
  foreach(other IN LISTS seen)
    slope_room_target(${other} target)
    list(APPEND targets ${target})
  endforeach()
  set(${result} ${targets} PARENT_SCOPE)
endfunction()

function(slope_add_room room)
  cmake_parse_arguments(PARSE_ARGV 1 room "" "" "LIBRARIES;EXCLUDE;WITH")
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  foreach(folder IN LISTS room_WITH)
    file(GLOB_RECURSE more CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.cpp)
    list(APPEND sources ${more})
  endforeach()
  foreach(excluded IN LISTS room_EXCLUDE)
    list(REMOVE_ITEM sources ${CMAKE_CURRENT_SOURCE_DIR}/${excluded})
  endforeach()
  slope_room_target(${room} target)
  slope_room_depends(${room} depends)
  add_library(${target} STATIC ${sources})
  target_include_directories(${target} PUBLIC ${PROJECT_SOURCE_DIR})
  target_link_libraries(${target} PUBLIC ${depends} ${room_LIBRARIES})
  if(NOT room STREQUAL "lang/syntax")  # the grammar needs a gigabyte a file
    slope_compile_in_batches(${target})
  endif()
  set_property(GLOBAL APPEND PROPERTY SLOPE_ROOM_LIBRARIES ${room_LIBRARIES})
  set_property(GLOBAL APPEND PROPERTY SLOPE_ROOM_TARGETS ${target})
endfunction()
