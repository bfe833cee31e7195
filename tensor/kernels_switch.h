// From an operation known at run time to code made for it: Switch(op, []<Unary kOp>() { .. }).
#pragma once

#include "tensor/kernels.h"

namespace weft::kernels {

template <class F>
void Switch(Activation activation, F&& function) {
  switch (activation) {
    case Activation::kNone:
      return function.template operator()<Activation::kNone>();
    case Activation::kTanh:
      return function.template operator()<Activation::kTanh>();
    case Activation::kRelu:
      return function.template operator()<Activation::kRelu>();
    case Activation::kSigmoid:
      return function.template operator()<Activation::kSigmoid>();
  }
}

template <class F>
void Switch(Unary op, F&& function) {
  switch (op) {
    case Unary::kNegate:
      return function.template operator()<Unary::kNegate>();
    case Unary::kExp:
      return function.template operator()<Unary::kExp>();
    case Unary::kLog:
      return function.template operator()<Unary::kLog>();
    case Unary::kSqrt:
      return function.template operator()<Unary::kSqrt>();
    case Unary::kSquare:
      return function.template operator()<Unary::kSquare>();
    case Unary::kAbs:
      return function.template operator()<Unary::kAbs>();
    case Unary::kTanh:
      return function.template operator()<Unary::kTanh>();
    case Unary::kRelu:
      return function.template operator()<Unary::kRelu>();
    case Unary::kSigmoid:
      return function.template operator()<Unary::kSigmoid>();
    case Unary::kSoftplus:
      return function.template operator()<Unary::kSoftplus>();
    case Unary::kElu:
      return function.template operator()<Unary::kElu>();
    case Unary::kGelu:
      return function.template operator()<Unary::kGelu>();
    case Unary::kGeluErf:
      return function.template operator()<Unary::kGeluErf>();
    case Unary::kSilu:
      return function.template operator()<Unary::kSilu>();
    case Unary::kReciprocal:
      return function.template operator()<Unary::kReciprocal>();
    case Unary::kSin:
      return function.template operator()<Unary::kSin>();
    case Unary::kCos:
      return function.template operator()<Unary::kCos>();
  }
}

template <class F>
void Switch(Binary op, F&& function) {
  switch (op) {
    case Binary::kAdd:
      return function.template operator()<Binary::kAdd>();
    case Binary::kSubtract:
      return function.template operator()<Binary::kSubtract>();
    case Binary::kMultiply:
      return function.template operator()<Binary::kMultiply>();
    case Binary::kDivide:
      return function.template operator()<Binary::kDivide>();
    case Binary::kMinimum:
      return function.template operator()<Binary::kMinimum>();
    case Binary::kMaximum:
      return function.template operator()<Binary::kMaximum>();
  }
}

}  // namespace weft::kernels
