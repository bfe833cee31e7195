#include "environments/asset.h"

#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <vector>

#include "base/check.h"
#include "base/file.h"
#include "base/text.h"

namespace weft {
namespace {

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::vector<std::string> Folders() {
  std::vector<std::string> folders;
  if (const std::string folder = Variable("WEFT_ASSETS"); !folder.empty())
    folders.push_back(folder);
  std::string cache = Variable("XDG_CACHE_HOME");
  if (cache.empty()) cache = Variable("HOME") + "/.cache";
  folders.push_back(cache + "/weft/gymnasium-1.4.0/assets");
  folders.push_back(cache + "/weft/dm_control-1.0.50");
  // An installed libweft.so lies in PREFIX/lib or one folder below.
  Dl_info library;
  if (dladdr(reinterpret_cast<void*>(&AssetPath), &library) != 0) {
    auto folder = std::filesystem::path(library.dli_fname).parent_path();
    for (int level = 0; level < 2; ++level) {
      folder = folder.parent_path();
      folders.push_back(folder / "share/weft/assets");
    }
  }
  return folders;
}

}  // namespace

bool IsStandardAsset(const std::string& name) {
  return !name.starts_with("/") && !name.starts_with(".") && !name.starts_with("~") &&
         name.find("..") == std::string::npos;
}

std::string AssetPath(const std::string& name) {
  std::vector<std::string> places;
  if (name.starts_with("~")) {
    places = {Variable("HOME") + name.substr(1)};
  } else if (!IsStandardAsset(name)) {
    places = {name};
  } else {
    for (const std::string& folder : Folders()) places.push_back(folder + "/" + name);
  }
  for (const std::string& place : places) {
    if (FileExists(place)) return place;
  }
  throw Error(ErrorCode::kUnavailable,
              "there is no model file " + Join(places, " nor ") + ": " +
                  (name.starts_with("dm_control/")
                       ? "./weft fetch dm_control fetches those of dm_control's suite"
                       : "./weft fetches the standard ones") +
                  ", WEFT_ASSETS names their folder");
}

}  // namespace weft
