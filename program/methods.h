// Configs of either kind of method: those that act in environments and those that train language
// models.
#pragma once

#include <memory>

#include "algorithms/algorithm.h"

namespace weft {

// The config's method if it trains a language model, else null. A name that both kinds have (ppo)
// is of a language model when the config has the key `model`.
std::unique_ptr<LanguageMethod> LoadLanguageMethod(const ConfigSource& source);
// Of either kind. Throws Error(kConfig) for an unknown name, a wrong key or value.
std::unique_ptr<Method> LoadMethod(const ConfigSource& source);

}  // namespace weft
