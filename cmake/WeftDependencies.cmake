# Every dependency through find_package, with the Debian package to install when one is missing.
find_package(Threads REQUIRED)
macro(weft_require name package)
  find_package(${name} ${ARGN} QUIET)
  if(NOT ${name}_FOUND)
    message(FATAL_ERROR "weft needs ${name}: install the Debian package ${package}, or run ./weft once, "
                        "which installs everything")
  endif()
endmacro()
weft_require(yaml-cpp libyaml-cpp-dev)
if(NOT TARGET yaml-cpp::yaml-cpp)  # named so from version 0.8
  add_library(yaml-cpp::yaml-cpp ALIAS yaml-cpp)
endif()
weft_require(nlohmann_json nlohmann-json3-dev)
weft_require(CLI11 libcli11-dev)
weft_require(fmt libfmt-dev)
weft_require(cppzmq cppzmq-dev)
weft_require(box2d libbox2d-dev 2.4)
weft_require(GIF libgif-dev)
weft_require(PNG libpng-dev)
weft_require(PkgConfig pkg-config)
macro(weft_require_module name module package)
  pkg_check_modules(${name} QUIET IMPORTED_TARGET ${module})
  if(NOT ${name}_FOUND)
    message(FATAL_ERROR "weft needs ${module}: install the Debian package ${package}, or run ./weft once, "
                        "which installs everything")
  endif()
endmacro()
weft_require_module(cpp-httplib cpp-httplib libcpp-httplib-dev)
weft_require_module(pcre2 libpcre2-8 libpcre2-dev)
weft_require_module(utf8proc libutf8proc libutf8proc-dev)

# Fetched by the launcher into the cache folder that checkouts share (pinned in cmake/wheels.txt). Found here, so that
# every folder sees the target; environments/ says what is left out without it.
find_package(MuJoCo 3.17.0 EXACT QUIET)
