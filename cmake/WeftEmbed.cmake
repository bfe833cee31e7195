# weft_embed(VARIABLE FILE ...): texts of the source tree for a configure_file that makes them C++; follows their changes.
function(weft_embed)
  while(ARGV)
    list(POP_FRONT ARGV variable file)
    file(READ ${PROJECT_SOURCE_DIR}/${file} text)
    set(${variable} "${text}" PARENT_SCOPE)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${file})
  endwhile()
endfunction()
