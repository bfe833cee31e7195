# weft_floor(NAME SOURCES ... [LIBRARIES ...]): one OBJECT library per folder. Objects, not archives: a static archive
# drops every file that nobody references, which is each self-registering environment and algorithm.
# -Wno-restrict: GCC 12 warns of its own std::string (GCC bug 105651).
set(WEFT_WARNINGS -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>
                  -Wno-missing-field-initializers)
# Contraction off and no fast-math: a sum has one order and one rounding, everywhere.
set(WEFT_ARITHMETIC -ffp-contract=off -fno-math-errno -fno-trapping-math)
# Calls inside libweft.so are direct and can be inlined: nobody replaces its functions from outside.
set(WEFT_SHARED_OPTIONS -fno-semantic-interposition)
set(WEFT_SHARED_LINK_OPTIONS -Wl,-Bsymbolic-functions)

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
  target_compile_options(weft_${name} PRIVATE ${WEFT_SHARED_OPTIONS})
  target_link_libraries(weft_${name} PRIVATE ${FLOOR_LIBRARIES} Threads::Threads)
  set_property(GLOBAL APPEND PROPERTY WEFT_FLOORS weft_${name})
  set_property(GLOBAL APPEND PROPERTY WEFT_LIBRARIES ${FLOOR_LIBRARIES})
endfunction()

# From all floors:
#   weft_shared  libweft.so, for other projects weft::weft
#   weft_main    an archive with a main() that is the whole program, for other projects weft::main: linked with a
#                file that registers an environment, it is a full weft with that environment
#   weft_binary  the program itself
function(weft_program)
  get_property(floors GLOBAL PROPERTY WEFT_FLOORS)
  get_property(libraries GLOBAL PROPERTY WEFT_LIBRARIES)
  list(REMOVE_DUPLICATES libraries)

  add_library(weft_shared SHARED)
  set_target_properties(weft_shared PROPERTIES OUTPUT_NAME weft EXPORT_NAME weft INSTALL_RPATH "$ORIGIN")
  target_link_libraries(weft_shared PRIVATE ${floors} ${libraries} Threads::Threads)
  target_link_options(weft_shared PRIVATE ${WEFT_SHARED_LINK_OPTIONS})
  target_compile_features(weft_shared INTERFACE cxx_std_20)
  target_compile_options(weft_shared INTERFACE -ffp-contract=off)
  target_include_directories(weft_shared INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
                                                   $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/weft>)
  weft_compile_options(weft_shared)

  add_library(weft_main STATIC main.cc)
  set_target_properties(weft_main PROPERTIES EXPORT_NAME main)
  target_link_libraries(weft_main PUBLIC weft_shared)
  weft_compile_options(weft_main)

  file(RELATIVE_PATH from_bin_to_lib ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})
  add_executable(weft_binary $<TARGET_OBJECTS:weft_main>)
  add_dependencies(weft_binary weft_main)  # the archive itself, for other projects
  set_target_properties(weft_binary PROPERTIES OUTPUT_NAME weft INSTALL_RPATH "$ORIGIN/${from_bin_to_lib}")
  target_link_libraries(weft_binary PRIVATE weft_shared)
  weft_compile_options(weft_binary)

  add_library(weft::weft ALIAS weft_shared)
  add_library(weft::main ALIAS weft_main)
endfunction()
