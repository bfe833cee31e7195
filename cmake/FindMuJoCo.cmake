# MuJoCo 3.17.0 as MuJoCo::MuJoCo, from MUJOCO_DIR (variable or environment), CMAKE_PREFIX_PATH or weft's
# cache folder, where the launcher unpacks it. Other versions compute other trajectories and are refused.
set(_mujoco_version 3.17.0)
set(_mujoco_header_number 3017000)
if(DEFINED ENV{XDG_CACHE_HOME})
  set(_mujoco_cache $ENV{XDG_CACHE_HOME}/weft/mujoco-${_mujoco_version})
else()
  set(_mujoco_cache $ENV{HOME}/.cache/weft/mujoco-${_mujoco_version})
endif()
set(_mujoco_hints ${MUJOCO_DIR} $ENV{MUJOCO_DIR})

find_path(MuJoCo_INCLUDE_DIR mujoco/mujoco.h HINTS ${_mujoco_hints} PATHS ${_mujoco_cache} PATH_SUFFIXES include)
find_library(MuJoCo_LIBRARY NAMES libmujoco.so.${_mujoco_version} HINTS ${_mujoco_hints} PATHS ${_mujoco_cache}
             PATH_SUFFIXES lib)
if(MuJoCo_INCLUDE_DIR)
  file(STRINGS ${MuJoCo_INCLUDE_DIR}/mujoco/mujoco.h _mujoco_line REGEX "#define +mjVERSION_HEADER +[0-9]+")
  string(REGEX MATCH "[0-9]+$" _mujoco_found "${_mujoco_line}")
  if(_mujoco_found EQUAL _mujoco_header_number)
    set(MuJoCo_VERSION ${_mujoco_version})
  endif()
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(MuJoCo REQUIRED_VARS MuJoCo_LIBRARY MuJoCo_INCLUDE_DIR MuJoCo_VERSION
                                  VERSION_VAR MuJoCo_VERSION)
mark_as_advanced(MuJoCo_INCLUDE_DIR MuJoCo_LIBRARY)
if(MuJoCo_FOUND AND NOT TARGET MuJoCo::MuJoCo)
  add_library(MuJoCo::MuJoCo SHARED IMPORTED GLOBAL)
  set_target_properties(MuJoCo::MuJoCo PROPERTIES
    IMPORTED_LOCATION ${MuJoCo_LIBRARY}
    IMPORTED_SONAME libmujoco.so.${_mujoco_version}
    INTERFACE_INCLUDE_DIRECTORIES ${MuJoCo_INCLUDE_DIR})
endif()
