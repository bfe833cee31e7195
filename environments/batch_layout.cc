#include "environments/batch_layout.h"

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>

#include "base/check.h"

namespace weft {
namespace {

// All exponent bits set means infinity or NaN.
template <class T>
struct Bits;
template <>
struct Bits<float> {
  using Word = uint32_t;
  static constexpr Word kExponent = 0x7f800000u;
};
template <>
struct Bits<double> {
  using Word = uint64_t;
  static constexpr Word kExponent = 0x7ff0000000000000u;
};
template <class T>
bool Finite(T value) {
  return (std::bit_cast<typename Bits<T>::Word>(value) & Bits<T>::kExponent) != Bits<T>::kExponent;
}
template <class T>
bool AllFinite(const T* values, int64_t begin, int64_t end) {
  // A word per element and no branch, so that the loop vectorises.
  typename Bits<T>::Word bad = 0;
  for (int64_t i = begin; i < end; ++i) {
    const auto exponent = std::bit_cast<typename Bits<T>::Word>(values[i]) & Bits<T>::kExponent;
    bad |= exponent == Bits<T>::kExponent ? ~typename Bits<T>::Word{0} : 0;
  }
  return bad == 0;
}

DType BatchDType(DType leaf) {
  return leaf == DType::kFloat64 ? DType::kFloat32 : leaf;
}

}  // namespace

TensorMap TimeStep::Leaves() const {
  static const auto& names =
      *new std::array<TensorName, 4>{"reward", "discount", "type", "episode_id"};
  TensorMap leaves;
  leaves.Reserve(observation.size() + names.size());
  for (const auto& [name, leaf] : observation) leaves.Set(name, leaf);
  leaves.Set(names[0], reward);
  leaves.Set(names[1], discount);
  leaves.Set(names[2], type);
  leaves.Set(names[3], episode_id);
  return leaves;
}

void SampleActions(const Space& space, const TimeStep& step, std::span<Rng> rngs, Tensor& action) {
  const Tensor* mask = step.observation.Find("action_mask");
  const auto rows = static_cast<size_t>(action.dim(0));
  const size_t bytes = action.bytes() / rows;
  for (size_t row = 0; row < rows; ++row) {
    Rng& rng = rngs[row % rngs.size()];
    std::byte* to = action.raw() + row * bytes;
    if (mask == nullptr) {
      space.Sample(rng, to);
    } else {
      space.Sample(rng, mask->data<uint8_t>().data() + row * (mask->bytes() / rows), to);
    }
  }
}

void BatchEnvironment::Render(int64_t, Canvas&) const {
  throw Error(ErrorCode::kConfig, spec().id + " is stepped elsewhere and draws no pictures here");
}

TimeStep MakeTimeStep(const EnvironmentSpec& spec, int64_t rows) {
  TimeStep step;
  for (const Leaf& leaf : spec.observation) {
    step.observation.Set(std::string_view(leaf.name),
                         Tensor::Zeros(leaf.shape.Prepend(rows), BatchDType(leaf.dtype)));
  }
  step.reward = Tensor::Zeros({rows});
  step.discount = Tensor::Zeros({rows});
  step.type = Tensor::Zeros({rows}, DType::kUInt8);
  step.episode_id = Tensor::Zeros({rows}, DType::kInt64);
  return step;
}

BatchLayout::BatchLayout(const EnvironmentSpec& spec, const BatchOptions& options)
    : spec_(spec), options_(options), leaf_count_(spec.observation.size()) {
  WEFT_CHECK(options.rows >= 1) << spec.id << " with " << options.rows << " rows";
  WEFT_CHECK(options.first_row >= 0) << spec.id << " with first row " << options.first_row;
  WEFT_CHECK(options.time_limit >= -1) << spec.id << " with time limit " << options.time_limit;
  WEFT_CHECK(options.action_repeat >= 1)
      << spec.id << " with action repeat " << options.action_repeat;
  WEFT_CHECK(leaf_count_ >= 1 && leaf_count_ <= kMaxLeaves)
      << spec.id << " has " << leaf_count_ << " leaves";
  if (options.time_limit >= 0) spec_.time_limit = options.time_limit;
  spec_.appearance.frames_per_second /= static_cast<double>(options.action_repeat);
  for (size_t i = 0; i < leaf_count_; ++i) {
    const Leaf& leaf = spec.observation[i];
    leaf_elements_[i] = leaf.shape.elements();
    leaf_bytes_[i] = leaf_elements_[i] * static_cast<int64_t>(SizeOf(leaf.dtype));
    if (leaf.dtype == DType::kFloat64) {
      scratch_[i] = Tensor::Zeros(leaf.shape.Prepend(options.rows), DType::kFloat64);
    }
  }
  for (size_t i = 0; i < leaf_count_; ++i) {
    LeafBounds bounds(spec.observation[i], i, options.rows);
    if (bounds.any()) bounds_.push_back(std::move(bounds));
  }
  action_elements_ = spec.action.shape().elements();
  if (const auto* discrete = spec.action.As<Discrete>()) {
    limits_ = {discrete->n};
    starts_ = {discrete->start};
  } else if (const auto* multi = spec.action.As<MultiDiscrete>()) {
    limits_ = multi->n;
    starts_ = multi->start;
  } else if (const auto* binary = spec.action.As<MultiBinary>()) {
    limits_.assign(static_cast<size_t>(binary->n), 2);
  }
  starts_.resize(limits_.size(), 0);
  if (std::any_of(starts_.begin(), starts_.end(), [](int64_t start) { return start != 0; })) {
    shifted_action_ = Tensor::Zeros(spec.action.shape().Prepend(options.rows), DType::kInt64);
  }
  for (size_t i = 0; i < leaf_count_; ++i) {
    const Leaf& leaf = spec.observation[i];
    if (leaf.name != "action_mask") continue;
    WEFT_CHECK(leaf.dtype == DType::kUInt8 && !limits_.empty() &&
               leaf_elements_[i] == std::accumulate(limits_.begin(), limits_.end(), int64_t{0}))
        << spec.id << " has an action_mask " << leaf.dtype << " " << leaf.shape << " for "
        << spec.action.ToString();
    mask_leaf_ = i;
  }
}

BatchLayout::View BatchLayout::Open(TimeStep& out) {
  const Shape rows{options_.rows};
  WEFT_CHECK_EQ(out.observation.size(), leaf_count_) << "observation leaves of " << spec_.id;
  View view;
  for (size_t i = 0; i < leaf_count_; ++i) {
    const Leaf& leaf = spec_.observation[i];
    Tensor& tensor = out.observation.entry(i).second;
    const DType dtype = BatchDType(leaf.dtype);
    WEFT_CHECK(tensor.dtype() == dtype && tensor.shape() == leaf.shape.Prepend(options_.rows))
        << spec_.id << " writes leaf " << leaf.name << " as " << dtype << " "
        << leaf.shape.Prepend(options_.rows) << ", not as " << tensor.dtype() << " "
        << tensor.shape();
    view.leaves[i] = scratch_[i].defined() ? scratch_[i].raw() : tensor.raw();
    if (dtype == DType::kFloat32) view.floats[i] = tensor.data<float>().data();
  }
  WEFT_CHECK(out.reward.shape() == rows && out.discount.shape() == rows &&
             out.type.shape() == rows && out.episode_id.shape() == rows)
      << "time step of " << spec_.id << " for " << options_.rows << " rows";
  view.reward = out.reward.data<float>().data();
  view.discount = out.discount.data<float>().data();
  view.type = out.type.data<uint8_t>().data();
  view.episode_id = out.episode_id.data<int64_t>().data();
  return view;
}

BatchLayout::View BatchLayout::Open(const Tensor& action, TimeStep& out) {
  View view = Open(out);
  const bool real = spec_.action.dtype() == DType::kFloat32;
  WEFT_CHECK(action.defined() && action.shape() == spec_.action.shape().Prepend(options_.rows))
      << "the action of " << spec_.id << " is " << spec_.action.ToString() << " in "
      << options_.rows << " rows, not " << action.shape();
  WEFT_CHECK(real ? action.dtype() == DType::kFloat32 || action.dtype() == DType::kFloat64
                  : action.dtype() == DType::kInt64)
      << "the action of " << spec_.id << " has dtype " << action.dtype();
  view.action = action.raw();
  view.action_dtype = action.dtype();
  view.action_bytes = action_elements_ * static_cast<int64_t>(SizeOf(action.dtype()));
  if (shifted_action_.defined()) {
    const auto from = action.data<int64_t>();
    const auto to = shifted_action_.data<int64_t>();
    for (size_t i = 0; i < to.size(); ++i) {
      // Unsigned, for indices that are out of range and refused later.
      to[i] = static_cast<int64_t>(static_cast<uint64_t>(from[i]) +
                                   static_cast<uint64_t>(starts_[i % starts_.size()]));
    }
    view.action = shifted_action_.raw();
  }
  return view;
}

void BatchLayout::RefuseAction(std::span<const StepType> before, int64_t i, double value) const {
  const int64_t row = i / action_elements_;
  if (before[static_cast<size_t>(row)] == StepType::kLast) return;
  const bool real = spec_.action.dtype() == DType::kFloat32;
  throw Error(real ? ErrorCode::kDiverged : ErrorCode::kInvalidArgument,
              RowName(row) + ": element " + std::to_string(i % action_elements_) +
                  " of the action is " + std::to_string(value) + ", outside " +
                  spec_.action.ToString());
}

void BatchLayout::CheckActions(const View& view, std::span<const StepType> before, int64_t begin,
                               int64_t end) const {
  const int64_t first = begin * action_elements_, last = end * action_elements_;
  const auto check_real = [&](const auto* values) {
    if (AllFinite(values, first, last)) return;
    for (int64_t i = first; i < last; ++i) {
      if (!Finite(values[i])) RefuseAction(before, i, values[i]);
    }
  };
  if (view.action_dtype == DType::kFloat32)
    return check_real(reinterpret_cast<const float*>(view.action));
  if (view.action_dtype == DType::kFloat64)
    return check_real(reinterpret_cast<const double*>(view.action));

  const auto* values = reinterpret_cast<const int64_t*>(view.action);
  for (int64_t i = first; i < last;) {
    for (size_t k = 0; k < limits_.size(); ++k, ++i) {
      const uint64_t index = static_cast<uint64_t>(values[i]) - static_cast<uint64_t>(starts_[k]);
      if (index >= static_cast<uint64_t>(limits_[k]))
        RefuseAction(before, i, static_cast<double>(values[i]));
    }
  }
}

void BatchLayout::CheckMasks(const View& view, int64_t begin, int64_t end) const {
  for (int64_t row = begin; row < end; ++row) {
    auto* mask =
        reinterpret_cast<uint8_t*>(view.leaves[mask_leaf_] + row * leaf_bytes_[mask_leaf_]);
    for (const int64_t count : limits_) {
      if (std::all_of(mask, mask + count, [](uint8_t allowed) { return allowed == 0; })) {
        if (view.type[row] != static_cast<uint8_t>(StepType::kLast))
          throw Error(ErrorCode::kInvalidArgument, RowName(row) + ": action_mask allows nothing");
        std::fill_n(mask, count, uint8_t{1});
      }
      mask += count;
    }
  }
}

void BatchLayout::Finish(const View& view, int64_t begin, int64_t end,
                         const std::function<int64_t(int64_t)>& steps) const {
  if (mask_leaf_ < leaf_count_) CheckMasks(view, begin, end);
  const auto refuse = [&](int64_t row, const std::string& what) {
    throw Error(ErrorCode::kDiverged, StepName(row, steps(row)) + ": " + what + " is not finite");
  };
  for (size_t leaf = 0; leaf < leaf_count_; ++leaf) {
    float* values = view.floats[leaf];
    if (values == nullptr) continue;
    const int64_t first = begin * leaf_elements_[leaf], last = end * leaf_elements_[leaf];
    if (scratch_[leaf].defined()) {
      const auto* source = reinterpret_cast<const double*>(view.leaves[leaf]);
      for (int64_t i = first; i < last; ++i) values[i] = static_cast<float>(source[i]);
    }
    if (AllFinite(values, first, last)) [[likely]]
      continue;
    for (int64_t i = first; i < last; ++i) {
      if (!Finite(values[i])) {
        refuse(i / leaf_elements_[leaf],
               spec_.observation[leaf].name + "[" + std::to_string(i % leaf_elements_[leaf]) + "]");
      }
    }
  }
  if (AllFinite(view.reward, begin, end)) return;
  for (int64_t row = begin; row < end; ++row) {
    if (!Finite(view.reward[row])) refuse(row, "the reward");
  }
}

void BatchLayout::CheckBounds(const View& view, int64_t begin, int64_t end,
                              const std::function<int64_t(int64_t)>& steps) const {
  for (const LeafBounds& bounds : bounds_) {
    const size_t leaf = bounds.leaf();
    const void* values = view.floats[leaf] != nullptr ? static_cast<const void*>(view.floats[leaf])
                                                      : view.leaves[leaf];
    if (bounds.Hold(values, begin, end)) [[likely]]
      continue;
    const auto [row, problem] = bounds.Find(values, begin, end);
    throw Error(ErrorCode::kInvalidArgument,
                StepName(row, steps(row)) + ": " + spec_.observation[leaf].name + problem);
  }
}

void RefuseOutcome(const char* function, StepType type, double discount) {
  static constexpr const char* kTypes[] = {"kFirst", "kMid", "kLast"};
  const auto index = static_cast<size_t>(type);
  const bool reset = std::string_view(function) == "Reset";
  throw Error(ErrorCode::kInvalidArgument,
              std::string(function) + " left the type " +
                  (index < 3 ? kTypes[index] : std::to_string(index)) + " and the discount " +
                  std::to_string(discount) +
                  (reset ? "; it ends with out.First(), or writes kFirst and 1"
                         : "; it ends with out.Next(reward, terminal), or writes kMid and 1 or, at "
                           "the end, kLast and 0 or 1"));
}

TensorMap BatchLayout::SaveRows(std::span<const StepType> types,
                                const std::function<const RowProgress&(size_t)>& progress,
                                const std::function<void(size_t, Writer&)>& rest) const {
  Writer out;
  out.Write(spec_.id);
  out.Write<uint64_t>(types.size());
  for (size_t row = 0; row < types.size(); ++row) {
    const RowProgress& of = progress(row);
    out.Write(of.rng.state());
    out.Write(of.episode);
    out.Write(of.steps);
    out.Write(types[row]);
    rest(row, out);
  }
  TensorMap state;
  state.Set("rows", Tensor::From<uint8_t>({static_cast<int64_t>(out.bytes().size())}, out.bytes()));
  return state;
}

void BatchLayout::LoadRows(const TensorMap& state, std::span<StepType> types,
                           const std::function<RowProgress&(size_t)>& progress,
                           const std::function<void(size_t, Reader&)>& rest) const {
  Reader in(state.At("rows").data<uint8_t>());
  const std::string id = in.ReadString();
  const auto count = in.Read<uint64_t>();
  if (id != spec_.id || count != types.size()) {
    throw Error(ErrorCode::kCorrupt, "the saved state is that of " + std::to_string(count) +
                                         " rows of " + id + ", not of " +
                                         std::to_string(types.size()) + " rows of " + spec_.id);
  }
  for (size_t row = 0; row < types.size(); ++row) {
    RowProgress& of = progress(row);
    of.rng = Rng(in.Read<Rng::State>());
    of.episode = in.Read<int64_t>();
    of.steps = in.Read<int64_t>();
    types[row] = in.Read<StepType>();
    if (types[row] > StepType::kLast || of.steps < 0) {
      throw Error(ErrorCode::kCorrupt, "the saved state of " + RowName(static_cast<int64_t>(row)) +
                                           " holds no step type and step count");
    }
    rest(row, in);
  }
  if (!in.AtEnd()) throw Error(ErrorCode::kCorrupt, "the saved state of " + id + " is too long");
}

std::string BatchLayout::RowName(int64_t row) const {
  const int64_t global = options_.first_row + row, agents = spec_.agent_count();
  std::string agent;
  if (!spec_.agents.empty()) {
    agent = spec_.agents[static_cast<size_t>(global % agents)].name + " of environment " +
            std::to_string(global / agents) + ", ";
  }
  return spec_.id + ", row " + std::to_string(global) + " (" + agent + "seed " +
         std::to_string(options_.seed) + ")";
}

std::string BatchLayout::StepName(int64_t row, int64_t step) const {
  return RowName(row) + (step == 0 ? ", reset" : ", step " + std::to_string(step));
}

}  // namespace weft
