// Reductions, the softmax family, normalisation, recurrent cells.
#include <algorithm>

#include "tensor/kernels.h"
#include "tensor/ops.h"
#include "tensor/ops_check.h"

namespace weft {
namespace {

using ops::Columns;
using ops::DropLast;
using ops::Fail;
using ops::Record;
using ops::Rows;

// x and index [..] for x [.., A].
void CheckIndex(const char* op, const Tensor& x, const Tensor& index) {
  ops::CheckRows(op, x);
  if (!index.defined() || index.dtype() != DType::kInt64 || index.shape() != DropLast(x.shape())) {
    Fail(op, "wants an I64 index of the leading dimensions of x", {&x, &index});
  }
}

bool IsMatrix(const Tensor& x, int64_t rows, int64_t columns) {
  return ops::IsFloat(x) && x.shape().rank() == 2 && x.shape().dims()[0] == rows &&
         x.shape().dims()[1] == columns;
}

}  // namespace

Tensor Sum(const Tensor& x) {
  ops::CheckFloat("Sum", x);
  Tensor y = Tensor::Empty({});
  const int64_t count = x.elements();
  ops::Floats(y)[0] = kernels::SumAll(CurrentContext(), count, ops::Floats(x));
  Record({.op = Op::kSum, .dims = {count}}, {}, {&x}, {&y}, {});
  return y;
}

Tensor Mean(const Tensor& x) {
  ops::CheckFloat("Mean", x);
  const int64_t count = x.elements();
  if (count == 0) Fail("Mean", "the mean of no elements", {&x});
  Tensor y = Tensor::Empty({});
  ops::Floats(y)[0] =
      kernels::SumAll(CurrentContext(), count, ops::Floats(x)) / static_cast<float>(count);
  Record({.op = Op::kMean, .dims = {count}}, {}, {&x}, {&y}, {});
  return y;
}

Tensor SumLast(const Tensor& x) {
  ops::CheckRows("SumLast", x);
  Tensor y = Tensor::Empty(DropLast(x.shape()));
  const Node node{.op = Op::kSumLast, .dims = {y.elements(), Columns(x)}};
  kernels::SumLast(CurrentContext(), node.dims[0], node.dims[1], ops::Floats(x), ops::Floats(y));
  Record(node, {}, {&x}, {&y}, {});
  return y;
}

Tensor Softmax(const Tensor& x) {
  ops::CheckRows("Softmax", x);
  Tensor y = Tensor::Empty(x.shape());
  const Node node{.op = Op::kSoftmax, .dims = {Rows(x), Columns(x)}};
  kernels::Softmax(CurrentContext(), node.dims[0], node.dims[1], ops::Floats(x), ops::Floats(y));
  Record(node, {}, {&x}, {&y}, {});
  return y;
}

Tensor LogSoftmax(const Tensor& x) {
  ops::CheckRows("LogSoftmax", x);
  Tensor y = Tensor::Empty(x.shape());
  const Node node{.op = Op::kLogSoftmax, .dims = {Rows(x), Columns(x)}};
  kernels::LogSoftmax(CurrentContext(), node.dims[0], node.dims[1], ops::Floats(x), ops::Floats(y));
  Record(node, {}, {&x}, {&y}, {});
  return y;
}

Tensor GatherLast(const Tensor& x, const Tensor& index) {
  CheckIndex("GatherLast", x, index);
  Tensor y = Tensor::Empty(index.shape());
  const Node node{.op = Op::kGatherLast, .dims = {index.elements(), Columns(x)}};
  const int64_t* indices = index.data<int64_t>().data();
  const float* from = ops::Floats(x);
  float* to = ops::Floats(y);
  for (int64_t row = 0; row < node.dims[0]; ++row) {
    const int64_t column = indices[row];
    if (column < 0 || column >= node.dims[1]) [[unlikely]] {
      WEFT_CHECK(false) << "GatherLast: index " << column << " in row " << row << " of x "
                        << x.shape();
    }
    to[row] = from[row * node.dims[1] + column];
  }
  Record(node, {}, {&x}, {&y}, {&index});
  return y;
}

Tensor ArgMaxLast(const Tensor& x) {
  ops::CheckRows("ArgMaxLast", x);
  if (Columns(x) == 0) Fail("ArgMaxLast", "the largest of no elements", {&x});
  Tensor index = Tensor::Empty(DropLast(x.shape()), DType::kInt64);
  Tensor largest = Tensor::Empty(index.shape());
  kernels::MaxLast(CurrentContext(), Rows(x), Columns(x), ops::Floats(x), ops::Floats(largest),
                   index.data<int64_t>().data());
  return index;
}

Tensor MaxLast(const Tensor& x) {
  ops::CheckRows("MaxLast", x);
  if (Columns(x) == 0) Fail("MaxLast", "the largest of no elements", {&x});
  Tensor largest = Tensor::Empty(DropLast(x.shape()));
  kernels::MaxLast(CurrentContext(), Rows(x), Columns(x), ops::Floats(x), ops::Floats(largest),
                   nullptr);
  return largest;
}

Tensor LayerNorm(const Tensor& x, const Tensor& gamma, const Tensor& beta, float epsilon) {
  ops::CheckRows("LayerNorm", x);
  const Shape columns = {Columns(x)};
  if (!ops::IsFloat(gamma) || !ops::IsFloat(beta) || gamma.shape() != columns ||
      beta.shape() != columns) {
    Fail("LayerNorm", "gamma and beta are not the last dimension of x", {&x, &gamma, &beta});
  }
  const Node node{.op = Op::kLayerNorm, .dims = {Rows(x), Columns(x)}};
  Tensor y = Tensor::Empty(x.shape());
  Tensor mean = Tensor::Empty({node.dims[0]}), rstd = Tensor::Empty({node.dims[0]});
  kernels::LayerNorm(CurrentContext(), node.dims[0], node.dims[1], ops::Floats(x),
                     ops::Floats(gamma), ops::Floats(beta), epsilon, {ops::Floats(y), false},
                     ops::Floats(mean), ops::Floats(rstd));
  Record(node, {}, {&x, &gamma, &beta}, {&y}, {&x, &gamma, &mean, &rstd});
  return y;
}

std::pair<Tensor, Tensor> LstmCell(const Tensor& gates, const Tensor& c) {
  ops::CheckRows("LstmCell", c);
  const int64_t hidden = Columns(c), rows = Rows(c);
  if (c.shape().rank() != 2 || !IsMatrix(gates, rows, 4 * hidden)) {
    Fail("LstmCell", "wants gates [B, 4H] and c [B, H]", {&gates, &c});
  }
  Tensor new_h = Tensor::Empty(c.shape()), new_c = Tensor::Empty(c.shape());
  Tensor activated = Tensor::Empty({rows, 5 * hidden});
  kernels::LstmCell(CurrentContext(), rows, hidden, ops::Floats(gates), ops::Floats(c),
                    ops::Floats(new_c), ops::Floats(new_h), ops::Floats(activated));
  Record({.op = Op::kLstmCell, .dims = {rows, hidden}}, {}, {&gates, &c}, {&new_h, &new_c},
         {&activated, &c});
  return {std::move(new_h), std::move(new_c)};
}

Tensor GruCell(const Tensor& x_gates, const Tensor& h_gates, const Tensor& h) {
  ops::CheckRows("GruCell", h);
  const int64_t hidden = Columns(h), rows = Rows(h);
  if (h.shape().rank() != 2 || !IsMatrix(x_gates, rows, 3 * hidden) ||
      !IsMatrix(h_gates, rows, 3 * hidden)) {
    Fail("GruCell", "wants x_gates and h_gates [B, 3H] and h [B, H]", {&x_gates, &h_gates, &h});
  }
  Tensor new_h = Tensor::Empty(h.shape());
  Tensor activated = Tensor::Empty({rows, 4 * hidden});
  kernels::GruCell(CurrentContext(), rows, hidden, ops::Floats(x_gates), ops::Floats(h_gates),
                   ops::Floats(h), ops::Floats(new_h), ops::Floats(activated));
  Record({.op = Op::kGruCell, .dims = {rows, hidden}}, {}, {&x_gates, &h_gates, &h}, {&new_h},
         {&activated, &h});
  return new_h;
}

}  // namespace weft
