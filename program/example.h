// docs/examples/own_environment and mujoco_task as they were when weft was built.
#pragma once

namespace weft {

extern const char* const kExampleSource;
extern const char* const kExampleConfig;
extern const char* const kTaskModel;
extern const char* const kTask;
extern const char* const kTaskConfig;

}  // namespace weft
