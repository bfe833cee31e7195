// From the leaves of a time step to what a network reads: one leaf as it is, several flattened side
// by side, normalised with the statistics that belong to the parameters. Integer leaves become
// one-hot, each element as many numbers as its bounds allow values: those of i64 (states, cards),
// and those of u8 with bounds other than 0 to 255, which are codes and no pixels; elements of 0 and
// 1 stay the number that they are. Agent and learner share it, so both see the same bits.
#pragma once

#include <string>
#include <vector>

#include "environments/environment_config.h"
#include "nn/running_statistics.h"
#include "tensor/tensor_map.h"

namespace weft {

class OnnxGraph;

class ObservationInput {
 public:
  // Throws ConfigProblem for leaves that networks cannot read: integers without bounds.
  ObservationInput(const EnvironmentSpec& spec, const NormaliserConfig& normaliser);

  const Shape& shape() const { return shape_; }  // of one row, as Trunk wants it

  // [.., shape] from leaves [.., leaf shape] with `leading` leading dimensions. prefix is put
  // before the leaf names
  // ("next_" for the second observation of a transition). An integer outside its bounds throws
  // Error(kInvalidArgument).
  Tensor operator()(const TensorMap& leaves, int leading, const std::string& prefix = "") const;
  // The reserved leaf action_mask, u8; undefined when the environment has none.
  Tensor Mask(const TensorMap& leaves, const std::string& prefix = "") const;

  bool normalises() const { return normaliser_.enabled; }
  // Raw input rows [.., shape] enter the statistics. Takes what Raw gives.
  void Update(const Tensor& raw) { statistics_.Update(raw); }
  Tensor Raw(const TensorMap& leaves, int leading, const std::string& prefix = "") const;

  // Makes the leaves inputs of a graph (nn/onnx.h), [batch, ..] in their dtypes, and appends what
  // operator() does.
  std::string Export(OnnxGraph& graph) const;
  // Makes the mask an input too: what to add to the numbers that actions are chosen by, 0 for the
  // legal ones and -1e30 for others, f32 [batch, A]. "" when the environment has none.
  std::string ExportMask(OnnxGraph& graph) const;

  // The statistics as leaves observation.mean, .variance, .count of a snapshot; nothing when it
  // does not normalise.
  void AddTo(TensorMap& snapshot) const;
  void TakeFrom(const TensorMap& snapshot);
  const RunningStatistics& statistics() const { return statistics_; }
  const NormaliserConfig& normaliser() const { return normaliser_; }

 private:
  // A leaf and, when it becomes one-hot, how: columns of the input stand for the values low[i] ..
  // low[i] + count[i] - 1 of element i, one element after the other.
  struct Part {
    Leaf leaf;
    bool whole = false;  // keeps its shape when it is the only one
    std::vector<int64_t> low = {}, count = {};
    int64_t width = 0;  // columns of the input

    bool one_hot() const { return !count.empty(); }
  };

  static std::vector<Part> ReadableParts(const EnvironmentSpec& spec);
  static void ReadIntegers(const EnvironmentSpec& spec, Part& part);
  static Shape InputShape(const std::vector<Part>& parts);
  template <class T>
  static Tensor OneHot(const Part& part, const Tensor& values);  // [..] -> [rows, width]
  static std::string ExportOneHot(const Part& part, const std::string& values, OnnxGraph& graph);

  bool whole() const { return parts_.size() == 1 && parts_[0].whole; }

  std::vector<Part> parts_;
  int64_t mask_size_;  // of a row; 0: there is none
  NormaliserConfig normaliser_;
  Shape shape_;
  RunningStatistics statistics_;
};

}  // namespace weft
