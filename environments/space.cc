#include "environments/space.h"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "base/check.h"
#include "base/random.h"
#include "base/text.h"

namespace weft {
namespace {

// "-1" when all are equal, else "[-1, -2]".
std::string BoundText(const std::vector<double>& bound) {
  std::ostringstream out;
  const bool equal =
      std::all_of(bound.begin(), bound.end(), [&](double b) { return b == bound.front(); });
  if (equal && !bound.empty()) {
    out << bound.front();
    return out.str();
  }
  out << "[";
  for (size_t i = 0; i < bound.size(); ++i) out << (i > 0 ? ", " : "") << bound[i];
  out << "]";
  return out.str();
}

std::string ListText(const std::vector<int64_t>& values) {
  std::vector<std::string> words;
  for (const int64_t value : values) words.push_back(std::to_string(value));
  return "[" + Join(words, ", ") + "]";
}

// Minus the logarithm of a uniform number in (0, 1]: exponential with mean 1.
double Exponential(Rng& rng) {
  return -std::log(1.0 - rng.Uniform());
}

float SampleReal(Rng& rng, double low, double high) {
  const bool below = std::isfinite(low), above = std::isfinite(high);
  if (below && above) return static_cast<float>(rng.Uniform(low, high));
  if (below) return static_cast<float>(low + Exponential(rng));
  if (above) return static_cast<float>(high - Exponential(rng));
  return static_cast<float>(rng.Normal());
}

}  // namespace

Shape Space::shape() const {
  if (const auto* box = As<Box>()) return Shape{static_cast<int64_t>(box->low.size())};
  if (const auto* multi = As<MultiDiscrete>()) return Shape{static_cast<int64_t>(multi->n.size())};
  if (const auto* binary = As<MultiBinary>()) return Shape{binary->n};
  return Shape{};
}

DType Space::dtype() const {
  return As<Box>() ? DType::kFloat32 : DType::kInt64;
}

bool Space::bounded() const {
  const auto* box = As<Box>();
  if (!box) return true;
  const auto finite = [](double bound) { return std::isfinite(bound); };
  return std::all_of(box->low.begin(), box->low.end(), finite) &&
         std::all_of(box->high.begin(), box->high.end(), finite);
}

std::string Space::ToString() const {
  if (const auto* box = As<Box>()) {
    return "Box(" + BoundText(box->low) + ", " + BoundText(box->high) + ", " + shape().ToString() +
           ")";
  }
  if (const auto* multi = As<MultiDiscrete>()) return "MultiDiscrete(" + ListText(multi->n) + ")";
  if (const auto* binary = As<MultiBinary>())
    return "MultiBinary(" + std::to_string(binary->n) + ")";
  const auto& discrete = *As<Discrete>();
  return "Discrete(" + std::to_string(discrete.n) +
         (discrete.start != 0 ? ", start=" + std::to_string(discrete.start) : "") + ")";
}

void Space::Sample(Rng& rng, void* action) const {
  if (const auto* box = As<Box>()) {
    auto* reals = static_cast<float*>(action);
    for (size_t i = 0; i < box->low.size(); ++i)
      reals[i] = SampleReal(rng, box->low[i], box->high[i]);
    return;
  }
  auto* indices = static_cast<int64_t*>(action);
  if (const auto* discrete = As<Discrete>()) {
    indices[0] = static_cast<int64_t>(rng.Below(static_cast<uint64_t>(discrete->n)));
  } else if (const auto* multi = As<MultiDiscrete>()) {
    for (size_t i = 0; i < multi->n.size(); ++i) {
      indices[i] = static_cast<int64_t>(rng.Below(static_cast<uint64_t>(multi->n[i])));
    }
  } else {
    const int64_t n = As<MultiBinary>()->n;
    for (int64_t i = 0; i < n; ++i) indices[i] = static_cast<int64_t>(rng.Below(2));
  }
}

void Space::Sample(Rng& rng, const uint8_t* mask, void* action) const {
  auto* indices = static_cast<int64_t*>(action);
  const auto draw = [&](int64_t n) {
    const auto allowed = static_cast<uint64_t>(std::count(mask, mask + n, uint8_t{1}));
    WEFT_CHECK(allowed > 0) << "a mask of " << ToString() << " allows no action";
    uint64_t skip = rng.Below(allowed);
    int64_t index = 0;
    while (mask[index] == 0 || skip-- > 0) ++index;
    mask += n;
    return index;
  };
  if (const auto* discrete = As<Discrete>()) {
    indices[0] = draw(discrete->n);
    return;
  }
  const auto* multi = As<MultiDiscrete>();
  WEFT_CHECK(multi != nullptr) << ToString() << " takes no mask";
  for (size_t i = 0; i < multi->n.size(); ++i) indices[i] = draw(multi->n[i]);
}

bool EnvironmentSpec::Has(std::string_view name) const {
  return std::ranges::any_of(observation, [&](const Leaf& leaf) { return leaf.name == name; });
}

const Leaf& EnvironmentSpec::leaf(std::string_view name) const {
  std::vector<std::string> names;
  for (const Leaf& leaf : observation) {
    if (leaf.name == name) return leaf;
    names.push_back(leaf.name);
  }
  throw Error(ErrorCode::kInvalidArgument, id + " has no observation leaf \"" + std::string(name) +
                                               "\"; it has " + Join(names, ", "));
}

}  // namespace weft
