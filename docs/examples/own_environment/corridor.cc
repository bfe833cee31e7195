// A corridor of `length` cells: start in the middle, walk left or right, reward 1 at the right end and 0 at the left one.
#include "environments/register_environment.h"

namespace {

class Corridor final : public weft::Environment {
 public:
  static constexpr double kStepNanoseconds = 10;  // cheap: rows are stepped without handing them to threads

  struct Arguments : weft::Config {
    int64_t length = 9;
    void Fields(weft::FieldVisitor& v) override {
      v.Field("length", length, "cells of the corridor", weft::Range::AtLeast(3));
    }
  };

  explicit Corridor(const Arguments& arguments) : length_(arguments.length) {
    spec_.id = "Corridor-v0";
    spec_.observation = {{.name = "observation", .shape = {1}, .low = {-1}, .high = {1}}};
    spec_.action = weft::Discrete{.n = 2};
    spec_.time_limit = 100;
  }

  const weft::EnvironmentSpec& spec() const override { return spec_; }

  void Reset(weft::Rng& rng, weft::StepRow out) override {
    cell_ = length_ / 2 + static_cast<int64_t>(rng.Below(3)) - 1;
    out.reward = 0, out.discount = 1, out.type = weft::StepType::kFirst;
    Observe(out.observation);
  }

  void Step(weft::ActionRow action, weft::Rng&, weft::StepRow out) override {
    cell_ += action.index() == 1 ? 1 : -1;
    const bool end = cell_ <= 0 || cell_ >= length_ - 1;
    out.reward = cell_ >= length_ - 1 ? 1 : 0;
    out.discount = end ? 0 : 1;
    out.type = end ? weft::StepType::kLast : weft::StepType::kMid;
    Observe(out.observation);
  }

  void Observe(weft::ObservationRow out) override {
    out.Leaf<float>()[0] = 2 * static_cast<float>(cell_) / static_cast<float>(length_ - 1) - 1;
  }
  void GetState(std::vector<double>& state) const override { state = {static_cast<double>(cell_)}; }
  void SetState(std::span<const double> state) override { cell_ = static_cast<int64_t>(state[0]); }
  void Save(weft::Writer& out) const override { out.Write(cell_); }
  void Load(weft::Reader& in) override { cell_ = in.Read<int64_t>(); }

 private:
  weft::EnvironmentSpec spec_;
  int64_t length_, cell_ = 0;
};

WEFT_REGISTER_ENVIRONMENT(Corridor, "Corridor-v0", "walk to the right end of a corridor");

}  // namespace
