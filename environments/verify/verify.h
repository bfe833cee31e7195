// Replays recorded transitions of the reference implementation (reference/environments/README.md
// has the format) and compares: single steps from given states, rollouts open-loop, action bounds,
// and by seeded sampling the distribution of first states and of the random policy's returns.
// Tolerances are those that the files state for another machine: they grow with the recorded
// sensitivity of each row.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace weft {

// One tensor of one file.
struct VerifyField {
  std::string file, tensor;
  int64_t checked = 0, failed = 0;  // values
  double ratio = 0;  // largest difference in units of its tolerance; above 1 is a failure
  double error = 0, tolerance = 0;  // of the value with that ratio
};

struct VerifyReport {
  int64_t checked = 0, failed = 0;  // values, over all fields
  VerifyField worst;                // the field with the largest ratio
  std::vector<VerifyField> fields;
  std::vector<std::string> files;    // compared
  std::vector<std::string> skipped;  // "name: reason"
};

// id: the environment to test, "" for the one that the file names. Throws Error for a file that
// cannot be read or holds no such recording, and for an unknown environment.
VerifyReport VerifyEnvironmentFile(const std::string& id, const std::string& path);

// Every .safetensors file of the folder; those of environments that are not registered are skipped.
VerifyReport VerifyEnvironmentFolder(const std::string& folder);

// A table: one line per file, with `all_fields` one per field.
std::string ToText(const VerifyReport& report, bool all_fields);

}  // namespace weft
