// Names to factories, filled by static registrations in the files that define the things.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/text.h"

namespace weft {

// One registry per kind of thing; T is the entry (a factory and its facts). Entries are added
// before main and only read afterwards, so reading needs no lock. Iteration is in the order of
// names.
template <class T>
class Registry {
 public:
  explicit Registry(const char* kind) : kind_(kind) {}

  // Adding a name twice is a programmer's mistake and throws.
  bool Add(std::string name, T entry) {
    WEFT_CHECK(entries_.emplace(name, std::move(entry)).second)
        << "the " << kind_ << " " << name << " is registered twice";
    return true;
  }
  const T* Find(std::string_view name) const {
    const auto found = entries_.find(name);
    return found == entries_.end() ? nullptr : &found->second;
  }
  // Throws Error(kConfig) with the nearest registered name when there is none.
  const T& At(std::string_view name) const {
    if (const T* entry = Find(name)) return *entry;
    throw Error(ErrorCode::kConfig, "there is no " + std::string(kind_) + " \"" +
                                        std::string(name) + "\"" + DidYouMean(name, Names()));
  }
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& [name, entry] : entries_) names.push_back(name);
    return names;
  }
  auto begin() const { return entries_.begin(); }
  auto end() const { return entries_.end(); }

 private:
  const char* kind_;
  std::map<std::string, T, std::less<>> entries_;
};

}  // namespace weft
