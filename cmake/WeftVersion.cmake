# Gives version.cc of the including folder the project's version and the commit; configures again after each commit.
find_package(Git QUIET)
set(weft_git_hash unknown)
if(Git_FOUND)
  execute_process(COMMAND ${GIT_EXECUTABLE} describe --always --dirty --abbrev=12 --exclude=*
                  WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE weft_git_hash
                  OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE weft_git_failed)
  if(weft_git_failed)
    set(weft_git_hash unknown)
  else()
    execute_process(COMMAND ${GIT_EXECUTABLE} rev-parse --path-format=absolute --git-path logs/HEAD
                    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE weft_git_log
                    OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    if(EXISTS "${weft_git_log}")
      set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${weft_git_log}")
    endif()
  endif()
endif()
set_source_files_properties(version.cc PROPERTIES COMPILE_DEFINITIONS
                            "WEFT_VERSION=\"${PROJECT_VERSION}\";WEFT_GIT_HASH=\"${weft_git_hash}\"")
