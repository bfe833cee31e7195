#include "program/fields.h"

#include <fmt/format.h>

namespace weft {

std::string LeafText(const Leaf& leaf) {
  if (leaf.dtype != DType::kInt64 || leaf.shape.rank() > 0 || leaf.low.empty() || leaf.high.empty())
    return leaf.shape.ToString();
  const auto low = static_cast<int64_t>(leaf.low[0]), high = static_cast<int64_t>(leaf.high[0]);
  return Space(Discrete{.n = high - low + 1, .start = low}).ToString();
}

std::vector<std::string> FieldLines(const EnvironmentSpec& spec) {
  std::vector<std::string> lines;
  for (const Leaf& leaf : spec.observation) {
    lines.push_back(fmt::format("{} {} {}", leaf.name, LeafText(leaf), Name(leaf.dtype)));
    for (size_t i = 0; i < leaf.elements.size(); ++i)
      lines.push_back(fmt::format("{:5}  {}", i, leaf.elements[i]));
  }
  lines.push_back("action " + spec.action.ToString());
  return lines;
}

std::string EnvironmentIdOf(const std::string& name) {
  const bool file = name.ends_with(".yaml") || name.ends_with(".xml");
  return file && name.find(':') == std::string::npos ? "mujoco:" + name : name;
}

}  // namespace weft
