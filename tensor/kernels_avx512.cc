// Compiled with -march=x86-64-v4.
#include "tensor/kernels_avx512.h"

#include "tensor/kernels_make_table.h"
#include "tensor/kernels_pairs.h"

namespace weft::kernels {

constinit const KernelTable kAvx512Kernels = MakeTable<Avx512>();
constinit const PairTable kAvx512Pairs = MakePairTable<EmulatedPairs<Avx512>>();

}  // namespace weft::kernels
