#include "program/methods.h"

#include "base/text.h"

namespace weft {

std::unique_ptr<LanguageMethod> LoadLanguageMethod(const ConfigSource& source) {
  const std::string name = source.Scalar("algorithm");
  const LanguageMethodEntry* const entry = LanguageMethods().Find(name);
  if (entry == nullptr) return nullptr;
  if (Algorithms().Find(name) != nullptr && !source.Has("model")) return nullptr;
  auto method = entry->make();
  source.Parse(*method);
  return method;
}

std::unique_ptr<Method> LoadMethod(const ConfigSource& source) {
  if (auto method = LoadLanguageMethod(source)) return method;
  const std::string name = source.Scalar("algorithm");
  if (!name.empty() && Algorithms().Find(name) == nullptr) {
    std::vector<std::string> names = Algorithms().Names();
    const std::vector<std::string> others = LanguageMethods().Names();
    names.insert(names.end(), others.begin(), others.end());
    throw Error(ErrorCode::kConfig,
                "there is no algorithm \"" + name + "\"" + DidYouMean(name, names));
  }
  return LoadAlgorithm(source);
}

}  // namespace weft
