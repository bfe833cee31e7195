// Dense, convolution and the element-wise ops.
#include "tensor/ops.h"

#include "tensor/kernels.h"
#include "tensor/ops_check.h"

namespace weft {
namespace ops {

void Fail(const char* op, const char* reason, std::initializer_list<const Tensor*> inputs) {
  std::string text = std::string(op) + ": ";
  const char* separator = "";
  for (const Tensor* input : inputs) {
    text += separator;
    separator = ", ";
    if (!input->defined()) {
      text += "undefined";
      continue;
    }
    text += input->shape().ToString() + " " + Name(input->dtype());
    if (input->layout() == Layout::kPanels) text += " in panels";
  }
  throw Error(ErrorCode::kInvalidArgument, text + ": " + reason);
}

int64_t Rows(const Tensor& x) {
  const int64_t columns = Columns(x);
  return columns == 0 ? 0 : x.elements() / columns;
}

Shape DropLast(const Shape& shape) {
  return Shape(shape.dims().first(static_cast<size_t>(shape.rank() - 1)));
}

}  // namespace ops

namespace {

using ops::CheckFloat;
using ops::Fail;
using ops::Record;

// How b meets a, or a failure that names both.
Broadcasting BroadcastOf(const char* op, const Tensor& a, const Tensor& b) {
  if (a.shape() == b.shape()) return Broadcasting::kNone;
  if (b.elements() == 1) return Broadcasting::kScalar;
  const auto from = a.shape().dims(), to = b.shape().dims();
  if (to.size() == 1 && !from.empty() && to.back() == from.back()) return Broadcasting::kRow;
  if (to.size() == from.size() && to.back() == 1 &&
      std::equal(from.begin(), from.end() - 1, to.begin())) {
    return Broadcasting::kColumn;
  }
  Fail(op,
       "the second shape is neither the first, one element, its last dimension [A] nor its leading "
       "ones [.., 1]",
       {&a, &b});
}

}  // namespace

Tensor Dense(const Tensor& x, const Tensor& w, const Tensor& b, Activation activation) {
  ops::CheckRows("Dense", x);
  if (w.layout() != Layout::kPanels || !w.defined()) [[unlikely]] {
    Fail("Dense", "weights lie in panels (ToLayout(Layout::kPanels), once)", {&x, &w});
  }
  const int64_t in = w.shape().dims()[0], out = w.shape().dims()[1];
  if (ops::Columns(x) != in) [[unlikely]]
    Fail("Dense", "the columns of x are not the rows of w", {&x, &w});
  if (b.defined() && (!ops::IsFloat(b) || b.shape().rank() != 1 || b.shape().dims()[0] != out))
      [[unlikely]] {
    Fail("Dense", "the bias is not [N] for w [K, N]", {&x, &w, &b});
  }
  const int64_t rows = ops::Rows(x);
  Tensor y = Tensor::Empty(x.shape().WithDim(-1, out));
  kernels::Dense(CurrentContext(), rows, in, out, ops::Floats(x), ops::Floats(w),
                 b.defined() ? ops::Floats(b) : nullptr, activation, ops::Floats(y));
  Record({.op = Op::kDense, .kind = static_cast<uint8_t>(activation), .dims = {rows, in, out}}, {},
         {&x, &w, &b}, {&y}, {&x, &w});
  return y;
}

Tensor Conv2d(const Tensor& x, const Tensor& w, const Tensor& b, int64_t kernel, int64_t stride,
              int64_t pad, Activation activation) {
  if (!ops::IsFloat(x) || x.shape().rank() != 4)
    Fail("Conv2d", "wants x [B, C, H, W] F32", {&x, &w});
  WEFT_CHECK(kernel > 0 && stride > 0 && pad >= 0)
      << "Conv2d: kernel " << kernel << ", stride " << stride << ", pad " << pad;
  const int64_t batch = x.dim(0), channels = x.dim(1), height = x.dim(2), width = x.dim(3);
  if (height + 2 * pad < kernel || width + 2 * pad < kernel)
    Fail("Conv2d", "the kernel is larger than the image", {&x, &w});
  const int64_t out_height = (height + 2 * pad - kernel) / stride + 1;
  const int64_t out_width = (width + 2 * pad - kernel) / stride + 1;
  Tensor patches = Tensor::Empty({batch * out_height * out_width, channels * kernel * kernel});
  kernels::Im2Col(CurrentContext(), batch, channels, height, width, kernel, stride, pad,
                  ops::Floats(x), ops::Floats(patches));
  Record({.op = Op::kIm2Col, .dims = {batch, channels, height, width, kernel, stride, pad}}, {},
         {&x}, {&patches}, {});
  const Tensor pixels = Dense(patches, w, b, activation);  // [B * OH * OW, OC]
  const int64_t area = out_height * out_width, out_channels = pixels.dim(1);
  Tensor y = Tensor::Empty({batch, out_channels, out_height, out_width});
  kernels::SwapLastTwo(CurrentContext(), batch, area, out_channels, ops::Floats(pixels),
                       ops::Floats(y));
  Record({.op = Op::kSwap, .dims = {batch, area, out_channels}}, {}, {&pixels}, {&y}, {});
  return y;
}

Tensor Apply(Unary op, const Tensor& x) {
  const Node node{.op = Op::kUnary, .kind = static_cast<uint8_t>(op), .dims = {x.elements()}};
  CheckFloat(Name(node), x);
  Tensor y = Tensor::Empty(x.shape());
  kernels::UnaryForward(CurrentContext(), op, node.dims[0], ops::Floats(x), ops::Floats(y));
  Record(node, {}, {&x}, {&y}, {&x});
  return y;
}

Tensor Apply(Binary op, const Tensor& a, const Tensor& b) {
  Node node{.op = Op::kBinary, .kind = static_cast<uint8_t>(op)};
  if (!ops::IsFloat(a) || !ops::IsFloat(b)) [[unlikely]]
    Fail(Name(node), "wants row-major F32 tensors", {&a, &b});
  node.broadcast = BroadcastOf(Name(node), a, b);
  const bool flat =
      node.broadcast == Broadcasting::kNone || node.broadcast == Broadcasting::kScalar;
  node.dims[0] = flat ? 1 : ops::Rows(a);
  node.dims[1] = flat ? a.elements() : ops::Columns(a);
  Tensor y = Tensor::Empty(a.shape());
  kernels::BinaryForward(CurrentContext(), op, node.broadcast, node.dims[0], node.dims[1],
                         ops::Floats(a), ops::Floats(b), ops::Floats(y));
  if (op == Binary::kAdd || op == Binary::kSubtract) {
    Record(node, {}, {&a, &b}, {&y}, {});
  } else {
    Record(node, {}, {&a, &b}, {&y}, {&a, &b});
  }
  return y;
}

Tensor Affine(const Tensor& x, float scale, float shift) {
  CheckFloat("Affine", x);
  Tensor y = Tensor::Empty(x.shape());
  const int64_t count = x.elements();
  kernels::Affine(CurrentContext(), count, scale, shift, ops::Floats(x), ops::Floats(y));
  Record({.op = Op::kAffine, .kind = static_cast<uint8_t>(scale == 1), .dims = {count}},
         {scale, shift}, {&x}, {&y}, {});
  return y;
}

Tensor Clamp(const Tensor& x, float low, float high) {
  CheckFloat("Clamp", x);
  WEFT_CHECK(low <= high) << "Clamp between " << low << " and " << high;
  Tensor y = Tensor::Empty(x.shape());
  const int64_t count = x.elements();
  kernels::Clamp(CurrentContext(), count, low, high, ops::Floats(x), ops::Floats(y));
  Record({.op = Op::kClamp, .dims = {count}}, {low, high}, {&x}, {&y}, {&x});
  return y;
}

Tensor Select(const Tensor& mask, const Tensor& a, const Tensor& b) {
  if (!mask.defined() || mask.dtype() != DType::kUInt8 || !ops::IsFloat(a) || !ops::IsFloat(b) ||
      mask.shape() != a.shape() || a.shape() != b.shape()) {
    Fail("Select", "wants a U8 mask and two F32 tensors of its shape", {&mask, &a, &b});
  }
  Tensor y = Tensor::Empty(a.shape());
  const int64_t count = a.elements();
  kernels::Select(CurrentContext(), count, mask.data<uint8_t>().data(), ops::Floats(a),
                  ops::Floats(b), ops::Floats(y));
  Record({.op = Op::kSelect, .dims = {count}}, {}, {&a, &b}, {&y}, {&mask});
  return y;
}

}  // namespace weft
