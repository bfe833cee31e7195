// What an environment observes and does, as lines of text.
#pragma once

#include <string>
#include <vector>

#include "environments/space.h"

namespace weft {

// "[17]", and of one integer "Discrete(16)".
std::string LeafText(const Leaf& leaf);

// A line for each leaf and, where it is known what they are, for each of its numbers; then the
// action.
std::vector<std::string> FieldLines(const EnvironmentSpec& spec);

// The id that a file of a MuJoCo task, or of a model, is short for; other names as they are.
std::string EnvironmentIdOf(const std::string& name);

}  // namespace weft
