// The portable level: the templates over a vector of one lane.
#include "tensor/kernels_make_table.h"
#include "tensor/kernels_pairs.h"
#include "tensor/kernels_scalar.h"

namespace weft::kernels {

constinit const KernelTable kPortableKernels = MakeTable<Scalar>();
constinit const PairTable kPortablePairs = MakePairTable<EmulatedPairs<Scalar>>();
constinit const PairTable kPortableBlocks = MakePairTable<BlockedPairs<Scalar>>();

}  // namespace weft::kernels
