# slope_add_layer(<name> [DEPENDS <target>...] [LIBRARIES <library>...] [EXCLUDE <file>...])
#
# The static library slope_<name> of all sources in the current folder. DEPENDS are the layers below it, LIBRARIES
# what it uses from outside. A folder without sources (headers alone) gives an interface library of the same name.
# The LIBRARIES are also noted in the global property SLOPE_LAYER_LIBRARIES: embed/ makes the one installed archive,
# which needs them all.
function(slope_add_layer name)
  cmake_parse_arguments(PARSE_ARGV 1 layer "" "" "DEPENDS;LIBRARIES;EXCLUDE")
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  foreach(excluded IN LISTS layer_EXCLUDE)
    list(REMOVE_ITEM sources ${CMAKE_CURRENT_SOURCE_DIR}/${excluded})
  endforeach()
  set(target slope_${name})
  if(sources)
    add_library(${target} STATIC ${sources})
    target_include_directories(${target} PUBLIC ${PROJECT_SOURCE_DIR})
    target_link_libraries(${target} PUBLIC ${layer_DEPENDS} ${layer_LIBRARIES})
  else()
    add_library(${target} INTERFACE)
    target_include_directories(${target} INTERFACE ${PROJECT_SOURCE_DIR})
    target_link_libraries(${target} INTERFACE ${layer_DEPENDS} ${layer_LIBRARIES})
  endif()
  set_property(GLOBAL APPEND PROPERTY SLOPE_LAYER_LIBRARIES ${layer_LIBRARIES})
endfunction()
