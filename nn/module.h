// Modules: things with named parameters. A parameter is a Tensor handle inside the module (f32;
// dense weights [in, out] in panels, the rest row-major). A tape marks the handles of the module it
// trains; an actor's module instead takes the handles of a published snapshot, which costs no copy.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "tensor/tensor_map.h"

namespace weft {

// A parameter's place in a module. Valid as long as the module lives and does not move.
struct NamedParameter {
  TensorName name;  // "policy.trunk.0.weight"
  Tensor* tensor;
};

class Module {
 public:
  virtual ~Module() = default;

  // Appends the module's parameters, in a fixed order, with prefix (empty or ending in '.') before
  // each name.
  virtual void Collect(std::string_view prefix, std::vector<NamedParameter>& out) = 0;
  std::vector<NamedParameter> Parameters(std::string_view prefix = "");
};

// Helps to write Collect: Add(prefix, "weight", weight_, out).
void AddParameter(std::string_view prefix, std::string_view name, Tensor& tensor,
                  std::vector<NamedParameter>& out);

// The places, as Tape takes them, and copies of the handles, as Tape::Gradient and Optimizer take
// them (make these after the tape has marked the parameters).
std::vector<Tensor*> Pointers(std::span<const NamedParameter> parameters);
std::vector<Tensor> Handles(std::span<const NamedParameter> parameters);
int64_t CountElements(std::span<const NamedParameter> parameters);

// Copies in own memory, off every tape.
TensorMap CopyState(std::span<const NamedParameter> parameters);
// The same without a copy, for state too large for two: whoever writes to a tensor first makes sure
// that he has it alone.
TensorMap ShareState(std::span<const NamedParameter> parameters);
// Copies it when others have a handle too, and leaves the old one to them.
void HaveAlone(Tensor& tensor);

// Writes the elements of state into the parameters, whatever layout either has. Before anything is
// written, throws Error(kInvalidArgument) that lists every missing, unexpected and mis-shaped
// tensor, or Error(kCorrupt) that names one with a value that is not finite.
void LoadState(std::span<const NamedParameter> parameters, const TensorMap& state);

// Throws Error(code) that names the first f32 tensor with an element that is NaN or infinite.
// Nothing non-finite is saved (kDiverged) or loaded (kCorrupt).
void CheckFinite(const TensorMap& tensors, ErrorCode code);

// to = from, and to += tau (from - to) (Polyak averaging), in place and without allocation. The
// lists must match in length and shapes.
void CopyParameters(std::span<const NamedParameter> from, std::span<const NamedParameter> to);
void LerpParameters(float tau, std::span<const NamedParameter> from,
                    std::span<const NamedParameter> to);

// Lets the parameters be the snapshot's tensors, which then must not be written. The entries are
// those of a snapshot of a module built alike, in the same order. Throws when a parameter is on a
// tape: a learner loads, it does not adopt.
void AdoptSnapshot(std::span<const NamedParameter> parameters, const TensorMap& snapshot);

// Makes snapshots for publication. A snapshot that no reader holds any more is written again, so
// that publishing allocates nothing once there are as many as readers keep. For one thread; readers
// may drop handles on any thread.
class SnapshotPool {
 public:
  explicit SnapshotPool(std::vector<NamedParameter> parameters);
  // Equal names and layouts in the order of the parameters.
  TensorMap Take();

 private:
  std::vector<NamedParameter> parameters_;
  std::vector<TensorMap> snapshots_;
};

}  // namespace weft
