#include "environments/mujoco/mjcf_files.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>

#include "base/check.h"
#include "base/file.h"
#include "base/scalar.h"
#include "environments/mujoco/xml_scan.h"

namespace weft {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMaxXmlBytes = uint64_t{8} << 20;  // of one MJCF file
constexpr uint64_t kMaxAssetBytes = uint64_t{1} << 30;
constexpr size_t kMaxXmlFiles = 100;
constexpr size_t kMaxPlaces = 100000;   // where its files may lie
constexpr double kMaxElements = 50000;  // with all copies
constexpr double kMaxCells = 1 << 24;   // of generated height fields and pictures together
constexpr double kMaxMemory = 1 << 30;  // bytes, of <size memory=...>
constexpr double kMaxNumber = 1000000;  // of any other size
constexpr double kMaxTimeStep = 1;      // s

// The numbers that a value lists; empty when it lists anything else.
std::vector<double> Numbers(std::string_view value) {
  std::vector<double> numbers;
  const std::string text(value);
  const char* at = text.c_str();
  for (;;) {
    while (std::isspace(static_cast<unsigned char>(*at))) ++at;
    if (*at == '\0') return numbers;
    char* end = nullptr;
    numbers.push_back(std::strtod(at, &end));
    if (end == at || (*end != '\0' && !std::isspace(static_cast<unsigned char>(*end)))) return {};
    at = end;
  }
}

// "1K" and the like, of <size memory=...>; -1 for no such text.
double Memory(const std::string& text) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  if (end == text.c_str()) return -1;
  const size_t power = std::string_view("KMGTPE").find(
      static_cast<char>(std::toupper(static_cast<unsigned char>(*end))));
  return power == std::string_view::npos ? number
                                         : number * std::pow(1024, static_cast<double>(power + 1));
}

class Inspection {
 public:
  explicit Inspection(const std::string& path) {
    const fs::path parent = fs::path(path).parent_path();
    folder_ = fs::weakly_canonical(parent.empty() ? "." : parent).string();
    Read(path);
    if (folders_.size() * asset_folders_.size() * references_.size() > kMaxPlaces)
      Refuse(path, "the model names too many files and folders");
    for (const Reference& reference : references_) Resolve(reference);
    const auto most =
        std::ranges::max_element(tags_, {}, [](const auto& tag) { return tag.second; });
    files_.commonest = most->first;
  }
  MjcfFiles TakeFiles() { return std::move(files_); }

 private:
  struct Reference {
    std::string place;  // "path:line: <element attribute="value">"
    std::string file;
  };

  // Where the scan stands.
  struct Cursor {
    std::string path;
    const XmlElement* element;
    std::string Place(std::string_view attribute) const {
      return path + ":" + std::to_string(element->line) + ": <" + std::string(element->tag) + " " +
             std::string(attribute) + "=\"" +
             std::string(element->Attribute(attribute).substr(0, 60)) + "\">";
    }
  };

  [[noreturn]] static void Refuse(const std::string& place, const std::string& reason) {
    throw Error(ErrorCode::kConfig, place + ": " + reason);
  }

  void Read(const std::string& path) {
    if (files_.paths.size() == kMaxXmlFiles)
      Refuse(path, "the model has more than " + std::to_string(kMaxXmlFiles) + " MJCF files");
    files_.paths.push_back(path);
    std::string text;
    try {
      text = ReadFile(path, kMaxXmlBytes);
    } catch (const Error& error) {
      throw Error(ErrorCode::kConfig, error.message());
    }
    folders_.insert(fs::path(path).parent_path().string());
    std::vector<Reference> included;
    std::vector<double> copies = {1};  // of the element at each depth that is open
    ScanXml(text, path,
            {.open =
                 [&](const XmlElement& element) {
                   const Cursor at{path, &element};
                   if (element.depth == 0 && element.tag != "mujoco" &&
                       element.tag != "mujocoinclude") {
                     Refuse(path + ":" + std::to_string(element.line),
                            "the root is <" + std::string(element.tag) +
                                ">, not <mujoco>: this is no MJCF file");
                   }
                   CheckNumbers(at);
                   CheckFiles(at, included);
                   copies.push_back(copies.back() * CountCopies(at, copies.back()));
                 },
             .close = [&] { copies.pop_back(); }});
    for (const Reference& reference : included) {
      const std::string found = Find(reference);
      if (!found.empty() && std::ranges::find(files_.paths, found) == files_.paths.end())
        Read(found);
    }
  }

  // How often the content of an element is there. Adds up what is generated so far.
  double CountCopies(const Cursor& at, double around) {
    const XmlElement& element = *at.element;
    const auto product = [&](std::string_view attribute) {
      double result = 1;
      for (const double count : Numbers(element.Attribute(attribute)))
        result *= std::max(1.0, count);
      return result;
    };
    double generated = 1, inside = 1;
    if (element.tag == "replicate") inside = product("count");
    if (element.tag == "composite" || element.tag == "flexcomp") generated = product("count");
    elements_ += around * generated;
    files_.elements = static_cast<int64_t>(std::min(elements_, 9e15));
    tags_[std::string(element.tag)] += around * generated;
    const std::string_view counted = generated > 1 || inside > 1 ? "count" : "name";
    if (!(elements_ <= kMaxElements) || !(around * inside <= kMaxElements)) {
      Refuse(at.Place(counted), "the model grows beyond " + NumberText(kMaxElements) + " elements");
    }
    const bool picture = element.tag == "texture";
    if (picture || element.tag == "hfield") {
      cells_ += picture ? product("width") * product("height") : product("nrow") * product("ncol");
      if (!(cells_ <= kMaxCells)) {
        Refuse(at.Place(picture ? "width" : "nrow"),
               "the height fields and pictures of the model have more than 2^24 cells");
      }
    }
    return inside;
  }

  static void CheckNumbers(const Cursor& at) {
    const XmlElement& element = *at.element;
    for (const auto& [name, value] : element.attributes) {
      if (name == "name" || name == "class") continue;
      for (const double number : Numbers(value)) {
        if (std::isnan(number)) Refuse(at.Place(name), "holds NaN");
        if (std::isinf(number) && (element.tag == "key" || element.tag == "option"))
          Refuse(at.Place(name), "is not finite");
      }
    }
    if (element.tag == "option" && !element.Attribute("timestep").empty()) {
      const auto step = Numbers(element.Attribute("timestep"));
      if (step.size() != 1 || !(step[0] > 0) || step[0] > kMaxTimeStep)
        Refuse(at.Place("timestep"), "a time step is one number above 0 and at most 1 s");
    }
    // Numbers that MuJoCo turns into memory.
    const auto bound = [&](std::string_view attribute) {
      for (const double number : Numbers(element.Attribute(attribute))) {
        if (!(number <= kMaxNumber))
          Refuse(at.Place(attribute), "must be at most " + NumberText(kMaxNumber));
      }
    };
    if (element.tag == "size") {
      const std::string memory(element.Attribute("memory"));
      if (Memory(memory) > kMaxMemory) Refuse(at.Place("memory"), "must be at most 1G");
      for (const auto& [name, value] : element.attributes) {
        if (name != "memory") bound(name);
      }
    }
    for (const char* attribute : {"dim", "actdim", "nsample", "num"}) bound(attribute);
    if (element.tag == "numeric" || element.tag == "tuple") bound("size");
  }

  void CheckFiles(const Cursor& at, std::vector<Reference>& included) {
    const XmlElement& element = *at.element;
    for (const auto& [name, value] : element.attributes) {
      const bool folder = name == "meshdir" || name == "texturedir" || name == "assetdir";
      if ((!folder && !name.starts_with("file")) || value.empty()) continue;
      const fs::path named(value);
      if (named.is_absolute() || value.find('\\') != std::string::npos ||
          std::ranges::find(named, fs::path("..")) != named.end()) {
        Refuse(at.Place(name),
               "a model's files lie in the folder of its main file or below, and are named "
               "relative to it with / between folders");
      }
      if (folder) {
        asset_folders_.insert(value);
        continue;
      }
      const bool mjcf = element.tag == "include" || element.tag == "model";
      (mjcf ? included : references_).push_back({at.Place(name), value});
    }
  }

  // The first file that a reference can mean; "" when there is none. All that it can mean must be
  // files in the model's folder.
  std::string Find(const Reference& reference) const {
    std::string found;
    for (const std::string& folder : folders_) {
      for (const std::string& assets : asset_folders_) {
        const fs::path place = fs::path(folder) / assets / reference.file;
        std::error_code error;
        const auto status = fs::status(place, error);
        if (!fs::exists(status)) continue;
        if (!fs::is_regular_file(status)) Refuse(reference.place, place.string() + " is no file");
        const std::string real = fs::canonical(place, error).string();
        if (error || !real.starts_with(folder_ == "/" ? folder_ : folder_ + "/")) {
          Refuse(reference.place, place.string() + " is a link that leaves the model's folder");
        }
        if (found.empty()) found = place.lexically_normal().string();
      }
    }
    return found;
  }

  void Resolve(const Reference& reference) {
    const std::string found = Find(reference);
    if (found.empty() || std::ranges::find(files_.paths, found) != files_.paths.end()) return;
    files_.paths.push_back(found);
    std::error_code error;
    files_.asset_bytes += fs::file_size(found, error);
    if (error || files_.asset_bytes > kMaxAssetBytes)
      Refuse(reference.place, "the files of the model have more than 1 GiB");
  }

  MjcfFiles files_;
  std::string folder_;                          // of the model, without links
  std::set<std::string> folders_;               // of MJCF files
  std::set<std::string> asset_folders_ = {""};  // relative to those
  std::vector<Reference> references_;           // to assets
  std::map<std::string, double> tags_;          // elements of each tag
  double elements_ = 0, cells_ = 0;
};

}  // namespace

MjcfFiles InspectMjcf(const std::string& path) {
  return Inspection(path).TakeFiles();
}

}  // namespace weft
