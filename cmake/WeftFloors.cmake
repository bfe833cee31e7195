# weft_floor(NAME SOURCES ... [LIBRARIES ...]): one OBJECT library per folder. Objects, not archives: a static archive
# drops every file that nobody references, which is each self-registering environment and algorithm.
# -Wno-restrict: GCC 12 warns of its own std::string (GCC bug 105651).
set(WEFT_WARNINGS -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion -Wno-restrict)
# Contraction off and no fast-math: a sum has one order and one rounding, everywhere.
set(WEFT_ARITHMETIC -ffp-contract=off -fno-math-errno -fno-trapping-math)

function(weft_compile_options target)
  target_compile_options(${target} PRIVATE ${WEFT_WARNINGS} ${WEFT_ARITHMETIC})
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR})
  if(WEFT_NATIVE)
    target_compile_options(${target} PRIVATE -march=native)
  endif()
  if(WEFT_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${WEFT_SANITIZE} -fno-omit-frame-pointer)
    target_link_options(${target} PRIVATE -fsanitize=${WEFT_SANITIZE})
  endif()
endfunction()

function(weft_floor name)
  cmake_parse_arguments(FLOOR "" "" "SOURCES;LIBRARIES" ${ARGN})
  add_library(weft_${name} OBJECT ${FLOOR_SOURCES})
  weft_compile_options(weft_${name})
  target_link_libraries(weft_${name} PRIVATE ${FLOOR_LIBRARIES} Threads::Threads)
  set_property(GLOBAL APPEND PROPERTY WEFT_FLOORS weft_${name})
  set_property(GLOBAL APPEND PROPERTY WEFT_LIBRARIES ${FLOOR_LIBRARIES})
endfunction()

# libweft.so from all floors, and the program: a main that calls into it.
function(weft_program)
  get_property(floors GLOBAL PROPERTY WEFT_FLOORS)
  get_property(libraries GLOBAL PROPERTY WEFT_LIBRARIES)
  list(REMOVE_DUPLICATES libraries)
  add_library(weft_shared SHARED)
  set_target_properties(weft_shared PROPERTIES OUTPUT_NAME weft EXPORT_NAME weft)
  target_link_libraries(weft_shared PRIVATE ${floors} ${libraries} Threads::Threads)
  weft_compile_options(weft_shared)
  add_executable(weft_binary main.cc)
  set_target_properties(weft_binary PROPERTIES OUTPUT_NAME weft)
  target_link_libraries(weft_binary PRIVATE weft_shared)
  weft_compile_options(weft_binary)
endfunction()
