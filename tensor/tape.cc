#include "tensor/tape.h"

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "base/log.h"
#include "tensor/context.h"
#include "tensor/gradient_plan.h"
#include "tensor/kernels.h"
#include "tensor/tape_record.h"

namespace weft {
namespace {

constexpr size_t kMaxPlans = 64;

bool IsFinite(const Tensor& tensor) {
  if (!tensor.defined() || tensor.dtype() != DType::kFloat32) return true;
  return kernels::FirstNonFinite(CurrentContext(), tensor.stored_elements(),
                                 tensor.data<float>().data()) < 0;
}

}  // namespace

struct Tape::Impl {
  TapeRecord record;
  std::vector<std::unique_ptr<GradientSet>> sets;
  std::vector<std::unique_ptr<GradientPlan>> plans;
  Tensor arena;  // shared by the plans: they run one after the other
  const GradientSet* last = nullptr;
  uint64_t clock = 0;
  bool warned = false;  // that there are more structures than plans
  Statistics statistics;

  const GradientSet& SetOf(std::span<const Tensor> parameters);
  GradientPlan& PlanOf(int32_t loss, const GradientSet& set);
};

const GradientSet& Tape::Impl::SetOf(std::span<const Tensor> parameters) {
  const auto same = [&](const std::unique_ptr<GradientSet>& set) {
    return std::equal(set->parameters.begin(), set->parameters.end(), parameters.begin(),
                      parameters.end(), [&](int32_t number, const Tensor& parameter) {
                        return number == record.ParameterOf(parameter);
                      });
  };
  const auto found = std::find_if(sets.begin(), sets.end(), same);
  if (found != sets.end()) return **found;

  auto set = std::make_unique<GradientSet>();
  std::vector<Tensor*> handles;
  for (const Tensor& parameter : parameters) {
    const int32_t number = record.ParameterOf(parameter);
    WEFT_CHECK_GE(number, 0) << "Gradient: the tape does not track parameter "
                             << set->parameters.size() << ", " << parameter.shape();
    WEFT_CHECK(std::find(set->parameters.begin(), set->parameters.end(), number) ==
               set->parameters.end())
        << "Gradient: parameter " << set->parameters.size() << ", " << parameter.shape()
        << ", is asked for twice";
    set->parameters.push_back(number);
    set->gradients.push_back(Tensor::Zeros(parameter.shape(), DType::kFloat32, parameter.layout()));
  }
  for (Tensor& gradient : set->gradients) handles.push_back(&gradient);
  set->block = JoinMemory(handles);
  sets.push_back(std::move(set));
  return *sets.back();
}

GradientPlan& Tape::Impl::PlanOf(int32_t loss, const GradientSet& set) {
  ++clock;
  for (const auto& plan : plans) {
    if (!plan->Matches(record, loss, set)) continue;
    plan->last_used = clock;
    ++statistics.plan_hits;
    return *plan;
  }
  ++statistics.plans_compiled;
  auto made = std::make_unique<GradientPlan>(record, loss, set);
  if (!arena.defined() || arena.elements() < made->arena_elements()) {
    arena = Tensor();  // the old one first, so that both never live together
    arena = Tensor::Empty({made->arena_elements()});
  }
  made->last_used = clock;
  if (plans.size() < kMaxPlans) {
    plans.push_back(std::move(made));
    return *plans.back();
  }
  if (!warned) {
    warned = true;
    const auto& latest =
        *std::max_element(plans.begin(), plans.end(),
                          [](const auto& a, const auto& b) { return a->last_used < b->last_used; });
    LogWarn("a backward pass of the " + std::to_string(kMaxPlans + 1) +
            "th structure is compiled; when structures change at every step that takes longer than "
            "it saves. The last "
            "change: " +
            latest->Difference(record));
  }
  auto& oldest = *std::min_element(plans.begin(), plans.end(), [](const auto& a, const auto& b) {
    return a->last_used < b->last_used;
  });
  oldest = std::move(made);
  return *oldest;
}

Tape::Tape(std::span<Tensor* const> parameters) : impl_(std::make_unique<Impl>()) {
  for (Tensor* parameter : parameters) impl_->record.AddParameter(*parameter);
}

Tape::~Tape() = default;

Tape::Recording::Recording(Tape& tape)
    : tape_(tape), previous_(TapeRecord::Exchange(&tape.impl_->record)) {
  tape_.impl_->record.Clear();
}

Tape::Recording::~Recording() {
  TapeRecord::Exchange(previous_);
  tape_.impl_->record.Clear();
}

std::span<const Tensor> Tape::Gradient(const Tensor& loss, std::span<const Tensor> parameters) {
  TapeRecord& record = impl_->record;
  WEFT_CHECK(loss.defined() && loss.elements() == 1 && loss.dtype() == DType::kFloat32)
      << "Gradient of a loss of shape " << loss.shape() << ", " << loss.dtype();
  const int32_t value = record.ValueOf(loss);
  WEFT_CHECK_NE(value, kNoValue)
      << "Gradient of a loss that is not on the current recording of this tape: no tracked "
         "parameter reaches it, or it was made in an earlier recording";
  const GradientSet& set = impl_->SetOf(parameters);
  const Context& context = CurrentContext();
  if (context.plan) {
    GradientPlan& plan = impl_->PlanOf(value, set);
    plan.Run(context, record, impl_->arena.data<float>().data());
  } else {
    InterpretGradient(context, record, value, set);
  }
  impl_->last = &set;
  return set.gradients;
}

const Tensor& Tape::FlatGradient() const {
  WEFT_CHECK(impl_->last != nullptr) << "FlatGradient before the first Gradient";
  return impl_->last->block;
}

std::string Tape::FirstNonFinite() const {
  const TapeRecord& record = impl_->record;
  const auto nodes = record.nodes();
  for (size_t n = 0; n < nodes.size(); ++n) {
    const Node& node = nodes[n];
    const auto all_finite = [&](int32_t begin, int32_t end) {
      for (int32_t i = begin; i < end; ++i) {
        if (!IsFinite(record.saved(node.first_saved + i))) return false;
      }
      return true;
    };
    if (all_finite(0, node.outputs)) continue;
    std::ostringstream text;
    text << Name(node);
    if (node.op == Op::kParameter) {
      text << " " << n << " " << record.saved(node.first_saved).shape();
    } else {
      text << ", node " << n - static_cast<size_t>(record.parameters());
      // Its inputs on the tape are finite, so one of them that is not came from outside. Cells and
      // LayerNorm save results of their own too, which say nothing.
      const bool saves_inputs =
          node.op == Op::kDense || node.op == Op::kUnary || node.op == Op::kBinary;
      const int32_t next = n + 1 < nodes.size() ? nodes[n + 1].first_saved : record.saved_count();
      if (saves_inputs && !all_finite(node.outputs, next - node.first_saved))
        text << ", whose constant input is not finite";
    }
    return text.str();
  }
  return "";
}

Tape::Statistics Tape::statistics() const {
  return impl_->statistics;
}

}  // namespace weft
