// tojson: Python's json.dumps, non-ASCII kept unless asked otherwise.
#include <algorithm>
#include <cmath>

#include "language/template/interpreter.h"
#include "language/unicode.h"
#include "nn/json_cursor.h"

namespace weft::jinja {
namespace {

class JsonWriter {
 public:
  JsonWriter(Interpreter& interpreter, const Arguments& arguments) : interpreter_(interpreter) {
    const auto bound =
        Bind(arguments, "tojson", {"ensure_ascii", "indent", "separators", "sort_keys"});
    ascii_ = bound[0] && bound[0]->Truthy();
    sorts_ = bound[3] && bound[3]->Truthy();
    if (bound[1] && !bound[1]->IsNone()) {
      if (bound[1]->text()) {
        indent_ = *bound[1]->text();
      } else {
        const int64_t width = IntegerOf(*bound[1], "the indent of tojson");
        indent_.assign(static_cast<size_t>(std::clamp<int64_t>(width, 0, 64)), ' ');
      }
      lines_ = true;
      between_ = ",";
    }
    if (bound[2] && !bound[2]->IsNone()) {
      const List pair = interpreter.Iterate(*bound[2]);
      if (pair.size() != 2) Raise("the separators of tojson are two");
      between_ = jinja::TextOf(pair[0], "a separator of tojson");
      behind_key_ = jinja::TextOf(pair[1], "a separator of tojson");
    }
  }

  std::string Write(const Value& value) {
    Append(value, 0);
    return std::move(out_);
  }

 private:
  void Append(const Value& value, int depth) {
    const size_t before = out_.size();
    interpreter_.budget().TakeSteps(1);
    if (const auto* items = value.items()) return AppendItems(*items, depth);
    if (const auto* members = value.members()) return AppendMembers(*members, depth);
    if (const auto* text = value.text()) {
      AppendText(*text);
    } else if (value.IsNone()) {
      out_ += "null";
    } else if (const auto* boolean = value.As<bool>()) {
      out_ += *boolean ? "true" : "false";
    } else if (const auto* integer = value.As<Integer>()) {
      out_ += IntegerText(*integer);
    } else if (const auto* number = value.As<double>()) {
      out_ += NumberText(*number);
    } else {
      Raise(std::string("Object of type ") + value.TypeName() + " is not JSON serializable");
    }
    interpreter_.budget().TakeBytes(out_.size() - before);
  }

  static std::string NumberText(double number) {
    if (std::isnan(number)) return "NaN";
    if (std::isinf(number)) return number > 0 ? "Infinity" : "-Infinity";
    return FloatText(number);
  }

  void AppendText(const std::string& text) {
    std::string quoted;
    AppendJsonQuoted(text, quoted);
    if (!ascii_) {
      out_ += quoted;
      return;
    }
    char escape[16];
    for (const char32_t code : ToCodePoints(quoted)) {
      const auto unit = [&](char32_t value) {
        std::snprintf(escape, sizeof(escape), "\\u%04x", static_cast<unsigned>(value));
        out_ += escape;
      };
      if (code < 0x7F) {
        out_ += static_cast<char>(code);
      } else if (code < 0x10000) {
        unit(code);
      } else {
        unit(0xD800 + ((code - 0x10000) >> 10));
        unit(0xDC00 + ((code - 0x10000) & 0x3FF));
      }
    }
  }

  void NewLine(int depth) {
    if (!lines_) return;
    out_ += '\n';
    for (int i = 0; i < depth; ++i) out_ += indent_;
    interpreter_.budget().TakeBytes(indent_.size() * static_cast<size_t>(depth) + 1);
  }

  void AppendItems(const List& items, int depth) {
    out_ += '[';
    for (size_t i = 0; i < items.size(); ++i) {
      if (i > 0) out_ += between_;
      NewLine(depth + 1);
      Append(items[i], depth + 1);
    }
    if (!items.empty()) NewLine(depth);
    out_ += ']';
    interpreter_.budget().TakeBytes(items.size() * between_.size() + 2);
  }

  static std::string KeyText(const Value& key) {
    if (const auto* text = key.text()) return *text;
    if (key.IsNone()) return "null";
    if (const auto* boolean = key.As<bool>()) return *boolean ? "true" : "false";
    if (const auto* integer = key.As<Integer>()) return IntegerText(*integer);
    if (const auto* number = key.As<double>()) return NumberText(*number);
    Raise(std::string("keys must be str, int, float, bool or None, not ") + key.TypeName());
  }

  void AppendMembers(const Dict& members, int depth) {
    std::vector<const Dict::value_type*> order;
    for (const auto& member : members) order.push_back(&member);
    if (sorts_) {
      std::ranges::stable_sort(order, [&](const auto* a, const auto* b) {
        return Order(interpreter_, a->first, b->first, "<") < 0;
      });
    }
    out_ += '{';
    for (size_t i = 0; i < order.size(); ++i) {
      if (i > 0) out_ += between_;
      NewLine(depth + 1);
      const std::string key = KeyText(order[i]->first);
      AppendText(key);
      out_ += behind_key_;
      interpreter_.budget().TakeBytes(key.size() + behind_key_.size() + between_.size() + 2);
      Append(order[i]->second, depth + 1);
    }
    if (!members.empty()) NewLine(depth);
    out_ += '}';
  }

  Interpreter& interpreter_;
  std::string out_;
  bool ascii_ = false, sorts_ = false, lines_ = false;
  std::string indent_, between_ = ", ", behind_key_ = ": ";
};

}  // namespace

std::string ToJson(Interpreter& interpreter, const Value& value, const Arguments& arguments) {
  return JsonWriter(interpreter, arguments).Write(value);
}

}  // namespace weft::jinja
