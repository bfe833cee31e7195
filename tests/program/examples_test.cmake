# Run as a test: the projects of docs/examples against an installed weft and against the build folder, as others would
# build them, with neither network nor weft's cache folder.
#   SOURCE, BUILD   of weft    GENERATOR, COMPILER   what to build with    MUJOCO   whether weft has it
#   FOLDER          to work in, emptied first
set(examples ${SOURCE}/docs/examples)
set(prefix ${FOLDER}/prefix)
file(REMOVE_RECURSE ${FOLDER})
file(MAKE_DIRECTORY ${FOLDER})
set(ENV{HOME} ${FOLDER})
unset(ENV{XDG_CACHE_HOME})
unset(ENV{WEFT_ASSETS})

# run(COMMAND ...): stops the test when it fails; leaves its output in `output`, and the last line's JSON in `json`.
function(run)
  execute_process(COMMAND ${ARGV} WORKING_DIRECTORY ${FOLDER} OUTPUT_VARIABLE out ERROR_VARIABLE error
                  RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    list(JOIN ARGV " " command)
    message(FATAL_ERROR "${command}\nended with ${status}\n${out}${error}")
  endif()
  string(REGEX MATCH "{[^\n]*}\n$" json "${out}")
  set(output "${out}" PARENT_SCOPE)
  set(json "${json}" PARENT_SCOPE)
endfunction()

# expect(ACTUAL WANTED WHAT)
function(expect actual wanted what)
  if(NOT actual STREQUAL wanted)
    message(FATAL_ERROR "${what}: \"${actual}\" instead of \"${wanted}\"")
  endif()
endfunction()

function(build example)
  run(${CMAKE_COMMAND} -S ${examples}/${example} -B ${FOLDER}/${example} -G ${GENERATOR} -DCMAKE_BUILD_TYPE=Release
      -DCMAKE_CXX_COMPILER=${COMPILER} ${ARGN})
  run(${CMAKE_COMMAND} --build ${FOLDER}/${example})
endfunction()

run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${prefix})
build(own_environment -DCMAKE_PREFIX_PATH=${prefix})
build(use_policy -Dweft_DIR=${BUILD})
build(send_receive -Dweft_DIR=${BUILD})

# The user's own binary is a whole weft, worker processes included.
set(own ${FOLDER}/own_environment/own)
set(corridor ${examples}/own_environment/corridor.yaml)
run(${own} verify environment Corridor-v0)
run(${own} train ${corridor} run=serial --json)
string(JSON hash GET "${json}" parameter_hash)
string(JSON return GET "${json}" evaluation mean)
expect(${return} 1.0 "return of the trained policy")
run(${own} train ${corridor} run=processes placement=split_actors processes=2 --json)
string(JSON hash_of_processes GET "${json}" parameter_hash)
expect(${hash_of_processes} ${hash} "parameter hash of two processes")
run(${own} evaluate serial --json)
string(JSON return GET "${json}" evaluation mean)
expect(${return} 1.0 "evaluated return")
foreach(lamp -1 1)
  run(${FOLDER}/own_environment/act runs/serial 0 ${lamp})
  math(EXPR towards_it "(${lamp} + 1) / 2")
  expect("${output}" "${towards_it}\n" "action with the lamp at ${lamp}")
endforeach()

# A new environment is such a project under another name.
run(${prefix}/bin/weft new environment MyLamp --json)
run(${CMAKE_COMMAND} -S ${FOLDER}/my_lamp -B ${FOLDER}/my_lamp/build -G ${GENERATOR} -DCMAKE_BUILD_TYPE=Release
    -DCMAKE_CXX_COMPILER=${COMPILER} -DCMAKE_PREFIX_PATH=${prefix})
run(${CMAKE_COMMAND} --build ${FOLDER}/my_lamp/build)
run(${FOLDER}/my_lamp/build/my_lamp train my_lamp/my_lamp.yaml run=new --json)
string(JSON hash_of_new GET "${json}" parameter_hash)
expect(${hash_of_new} ${hash} "parameter hash under another name")
run(${FOLDER}/my_lamp/build/my_lamp verify environment MyLamp-v0)

# The installed program and its configs, from another folder, and its policy in another program.
set(configs ${prefix}/share/weft/configs)
run(${prefix}/bin/weft train ${configs}/ppo/cartpole.yaml run=cartpole total_steps=4000 --json)
run(${FOLDER}/use_policy/use_policy runs/cartpole 0.01 0 -0.02 0)
if(NOT output MATCHES "^[01]\n$")
  message(FATAL_ERROR "use_policy printed \"${output}\" instead of an action")
endif()
# Environments tell the same story however many are received at once, on however many threads.
run(${FOLDER}/send_receive/send_receive CartPole-v1 24 24 1)
set(in_lockstep "${output}")
foreach(at_once 1 7)
  run(${FOLDER}/send_receive/send_receive CartPole-v1 24 ${at_once} 3)
  expect("${output}" "${in_lockstep}" "mean return, ${at_once} received at once")
endforeach()
if(MUJOCO)
  run(${prefix}/bin/weft train ${configs}/ppo/half_cheetah.yaml run=half_cheetah total_steps=1024 rollout_steps=64
      evaluation.episodes=1 evaluation.final_episodes=1 --json)
endif()
file(REMOVE_RECURSE ${FOLDER})
