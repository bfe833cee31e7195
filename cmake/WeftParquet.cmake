# libweft_parquet.so, which reads Parquet files: only where ./weft fetch parquet has put Apache Arrow, of the wheel
# pyarrow, into the cache (or ARROW_DIR names such a folder). It stands beside libweft.so, which loads it when the first
# such file is met. `cmake --install FOLDER --component parquet` installs it with Arrow's libraries.
if(NOT ARROW_DIR)
  if(DEFINED ENV{XDG_CACHE_HOME})
    set(ARROW_DIR $ENV{XDG_CACHE_HOME}/weft/arrow-26.0.1)
  else()
    set(ARROW_DIR $ENV{HOME}/.cache/weft/arrow-26.0.1)
  endif()
endif()
set(arrow_libraries ${ARROW_DIR}/lib/libparquet.so.2600 ${ARROW_DIR}/lib/libarrow.so.2600)
foreach(library ${arrow_libraries})
  if(NOT EXISTS ${library})
    return()
  endif()
endforeach()

add_library(weft_parquet MODULE rlhf/parquet_library.cc)
set_target_properties(weft_parquet PROPERTIES INSTALL_RPATH "$ORIGIN" BUILD_RPATH ${ARROW_DIR}/lib)
weft_compile_options(weft_parquet)
target_include_directories(weft_parquet SYSTEM PRIVATE ${ARROW_DIR}/include)
target_link_libraries(weft_parquet PRIVATE ${arrow_libraries})
add_dependencies(weft_shared weft_parquet)

install(TARGETS weft_parquet LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT parquet EXCLUDE_FROM_ALL)
install(FILES ${arrow_libraries} DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT parquet EXCLUDE_FROM_ALL)
install(DIRECTORY ${ARROW_DIR}/licenses/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/arrow COMPONENT parquet EXCLUDE_FROM_ALL)
