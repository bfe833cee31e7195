# What `cmake --install` puts into a prefix, and the CMake package for other projects:
#   bin/weft  lib/libweft.so  lib/libmujoco.so.3.17.0  include/weft/FLOOR/*.h
#   share/weft/{configs,assets}  share/doc/weft  lib/cmake/weft
# find_package(weft) works from the prefix and, with -Dweft_DIR=..., from the build folder.
include(CMakePackageConfigHelpers)

install(TARGETS weft_binary)
install(TARGETS weft_shared weft_main EXPORT weftTargets)
foreach(floor ${WEFT_FLOOR_NAMES})
  install(DIRECTORY ${floor} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/weft FILES_MATCHING PATTERN "*.h")
endforeach()

# MuJoCo's library stands beside libweft.so, which looks there first; the models where environments/asset.cc does.
if(MuJoCo_FOUND)
  get_filename_component(mujoco_folder ${MuJoCo_INCLUDE_DIR} DIRECTORY)
  set(gymnasium_folder ${mujoco_folder}/../gymnasium-1.4.0)
  set(dm_control_folder ${mujoco_folder}/../dm_control-1.0.50)
  install(FILES ${MuJoCo_LIBRARY} DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(DIRECTORY ${gymnasium_folder}/assets DESTINATION ${CMAKE_INSTALL_DATADIR}/weft OPTIONAL)
  install(DIRECTORY ${mujoco_folder}/licenses/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/mujoco OPTIONAL)
  install(DIRECTORY ${gymnasium_folder}/licenses/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/gymnasium OPTIONAL)
  install(DIRECTORY ${dm_control_folder}/dm_control DESTINATION ${CMAKE_INSTALL_DATADIR}/weft/assets OPTIONAL)
  install(DIRECTORY ${dm_control_folder}/licenses/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/dm_control OPTIONAL)
endif()
install(DIRECTORY configs DESTINATION ${CMAKE_INSTALL_DATADIR}/weft OPTIONAL)
install(FILES LICENSE THIRD_PARTY_NOTICES.md DESTINATION ${CMAKE_INSTALL_DOCDIR})

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/weft)
configure_package_config_file(cmake/weftConfig.cmake.in weftConfig.cmake INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(weftConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/weftConfig.cmake ${PROJECT_BINARY_DIR}/weftConfigVersion.cmake
        DESTINATION ${package_folder})
install(EXPORT weftTargets NAMESPACE weft:: DESTINATION ${package_folder})
export(EXPORT weftTargets NAMESPACE weft:: FILE ${PROJECT_BINARY_DIR}/weftTargets.cmake)
