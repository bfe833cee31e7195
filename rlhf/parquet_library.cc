// libweft_parquet.so: the rows of a Parquet file as lines of JSON (rlhf/parquet_interface.h), by
// Apache Arrow. Built where ./weft fetch parquet has put Arrow, loaded when a Parquet file is met.
#include <algorithm>
#include <arrow/api.h>
#include <arrow/io/memory.h>
#include <charconv>
#include <memory>
#include <parquet/arrow/reader.h>
#include <parquet/arrow/schema.h>
#include <parquet/exception.h>
#include <stdexcept>
#include <string>
#include <string_view>
#include <strings.h>
#include <vector>

#include "rlhf/parquet_interface.h"

namespace weft {
namespace {

// A file may claim any size: what it makes Arrow hold at a time, and what its rows are as text, is
// bounded by these.
constexpr int64_t kArrowBytes = int64_t{4} << 30;
constexpr uint64_t kLeastTextBytes = uint64_t{1} << 30;
constexpr uint64_t kMostTextPerByte = 1000;
constexpr int64_t kRowsTogether = 1024;
constexpr int kDepth = 32;

[[noreturn]] void Fail(const std::string& reason) {
  throw std::runtime_error(reason);
}

void CheckOk(const arrow::Status& status) {
  if (!status.ok()) throw parquet::ParquetException(status.message());
}
template <class T>
T Get(arrow::Result<T> result) {
  CheckOk(result.status());
  return std::move(result).ValueUnsafe();
}

// Fails where a column, or what it is made of, has no JSON that would be the same value.
void CheckType(const std::string& column, const arrow::DataType& type, int depth = 0) {
  using arrow::Type;
  if (depth > kDepth) Fail("the column " + column + " is nested more than 32 deep");
  switch (type.id()) {
    case Type::NA:
    case Type::BOOL:
    case Type::INT8:
    case Type::INT16:
    case Type::INT32:
    case Type::INT64:
    case Type::UINT8:
    case Type::UINT16:
    case Type::UINT32:
    case Type::UINT64:
    case Type::FLOAT:
    case Type::DOUBLE:
    case Type::STRING:
    case Type::LARGE_STRING:
      return;
    case Type::DICTIONARY:
      return CheckType(column, *static_cast<const arrow::DictionaryType&>(type).value_type(),
                       depth + 1);
    case Type::LIST:
    case Type::LARGE_LIST:
    case Type::FIXED_SIZE_LIST:
      return CheckType(column, *type.field(0)->type(), depth + 1);
    case Type::STRUCT:
      for (const auto& field : type.fields()) {
        CheckType(column + "." + field->name(), *field->type(), depth + 1);
      }
      return;
    default:
      Fail("the column " + column + " is " + type.ToString() +
           "; texts, numbers, booleans, and lists and structs of them are read");
  }
}

template <class Number>
void AppendNumber(Number number, std::string& out) {
  char text[32];
  out.append(text, std::to_chars(text, text + sizeof(text), number).ptr);
}

void AppendText(std::string_view text, std::string& out) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  out += '"';
  size_t done = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte >= 0x20 && byte != '"' && byte != '\\') continue;
    out.append(text, done, i - done);
    done = i + 1;
    if (byte >= 0x20) {
      out += {'\\', text[i]};
    } else if (byte == '\n') {
      out += "\\n";
    } else {
      out += "\\u00";
      out += {kDigits[byte >> 4], kDigits[byte & 15]};
    }
  }
  out.append(text, done);
  out += '"';
}

void AppendValue(const arrow::Array& array, int64_t i, std::string& out);

// The members of a struct, or the columns of a row.
template <class FieldAt>
void AppendObject(const arrow::FieldVector& fields, FieldAt at, int64_t i, std::string& out) {
  out += '{';
  bool first = true;
  for (int f = 0; f < static_cast<int>(fields.size()); ++f) {
    const arrow::Array& values = *at(f);
    if (values.IsNull(i)) continue;
    if (!first) out += ',';
    first = false;
    AppendText(fields[f]->name(), out);
    out += ':';
    AppendValue(values, i, out);
  }
  out += '}';
}

template <class List>
void AppendList(const arrow::Array& array, int64_t i, std::string& out) {
  const auto& list = static_cast<const List&>(array);
  const int64_t begin = list.value_offset(i), end = begin + list.value_length(i);
  out += '[';
  for (int64_t k = begin; k < end; ++k) {
    if (k > begin) out += ',';
    AppendValue(*list.values(), k, out);
  }
  out += ']';
}

template <class Array>
auto At(const arrow::Array& array, int64_t i) {
  return static_cast<const Array&>(array).GetView(i);
}

void AppendEntry(const arrow::DictionaryArray& array, int64_t i, std::string& out) {
  const int64_t index = array.GetValueIndex(i);
  if (index < 0 || index >= array.dictionary()->length()) Fail("an entry of no dictionary");
  AppendValue(*array.dictionary(), index, out);
}

void AppendValue(const arrow::Array& array, int64_t i, std::string& out) {
  using arrow::Type;
  if (array.IsNull(i)) {
    out += "null";
    return;
  }
  switch (array.type_id()) {
    case Type::BOOL:
      out += At<arrow::BooleanArray>(array, i) ? "true" : "false";
      return;
    case Type::INT8:
      return AppendNumber(int{At<arrow::Int8Array>(array, i)}, out);
    case Type::INT16:
      return AppendNumber(At<arrow::Int16Array>(array, i), out);
    case Type::INT32:
      return AppendNumber(At<arrow::Int32Array>(array, i), out);
    case Type::INT64:
      return AppendNumber(At<arrow::Int64Array>(array, i), out);
    case Type::UINT8:
      return AppendNumber(int{At<arrow::UInt8Array>(array, i)}, out);
    case Type::UINT16:
      return AppendNumber(At<arrow::UInt16Array>(array, i), out);
    case Type::UINT32:
      return AppendNumber(At<arrow::UInt32Array>(array, i), out);
    case Type::UINT64:
      return AppendNumber(At<arrow::UInt64Array>(array, i), out);
    // What is not finite is written as no JSON reads it: the row is refused like any other.
    case Type::FLOAT:
      return AppendNumber(double{At<arrow::FloatArray>(array, i)}, out);
    case Type::DOUBLE:
      return AppendNumber(At<arrow::DoubleArray>(array, i), out);
    case Type::STRING:
      return AppendText(At<arrow::StringArray>(array, i), out);
    case Type::LARGE_STRING:
      return AppendText(At<arrow::LargeStringArray>(array, i), out);
    case Type::DICTIONARY:
      return AppendEntry(static_cast<const arrow::DictionaryArray&>(array), i, out);
    case Type::LIST:
      return AppendList<arrow::ListArray>(array, i, out);
    case Type::LARGE_LIST:
      return AppendList<arrow::LargeListArray>(array, i, out);
    case Type::FIXED_SIZE_LIST:
      return AppendList<arrow::FixedSizeListArray>(array, i, out);
    case Type::STRUCT: {
      const auto& members = static_cast<const arrow::StructArray&>(array);
      return AppendObject(
          array.type()->fields(), [&](int f) { return members.field(f); }, i, out);
    }
    default:  // CheckType has refused it
      return;
  }
}

class Reader {
 public:
  Reader(const uint8_t* file, uint64_t bytes) : pool_(arrow::default_memory_pool(), kArrowBytes) {
    parquet::ReaderProperties properties(&pool_);
    properties.set_page_checksum_verification(true);
    parquet::ArrowReaderProperties rows(/*use_threads=*/false);
    rows.set_batch_size(kRowsTogether);
    rows.set_pre_buffer(false);
    parquet::arrow::FileReaderBuilder builder;
    CheckOk(builder.Open(std::make_shared<arrow::io::BufferReader>(
                             std::make_shared<arrow::Buffer>(file, static_cast<int64_t>(bytes))),
                         properties));
    reader_ = Get(builder.memory_pool(&pool_)->properties(rows)->Build());
    most_text_ = std::max(kLeastTextBytes, bytes * kMostTextPerByte);
  }

  void Read(const std::vector<std::string>& names, WeftTakeLines take, void* taker) {
    std::vector<int> groups;
    for (int i = 0; i < reader_->num_row_groups(); ++i) groups.push_back(i);
    const auto batches = Get(reader_->GetRecordBatchReader(groups, Leaves(names)));
    for (const auto& field : batches->schema()->fields()) CheckType(field->name(), *field->type());
    std::string lines;
    uint64_t text = 0;
    while (const auto batch = Get(batches->Next())) {
      CheckOk(batch->Validate());
      const auto& fields = batch->schema()->fields();
      const auto& columns = batch->columns();
      for (int64_t row = 0; row < batch->num_rows(); ++row) {
        AppendObject(
            fields, [&](int f) -> const auto& { return columns[f]; }, row, lines);
        lines += '\n';
        if (text + lines.size() > most_text_) {
          Fail("its rows have more than " + std::to_string(most_text_) + " bytes of text");
        }
      }
      text += lines.size();
      if (!take(taker, lines.data(), lines.size())) return;
      lines.clear();
    }
  }

 private:
  // The columns as they are stored, which parts of messages are too, of the rows' columns.
  std::vector<int> Leaves(const std::vector<std::string>& names) const {
    const parquet::SchemaDescriptor& schema = *reader_->parquet_reader()->metadata()->schema();
    std::vector<int> leaves;
    for (int i = 0; i < schema.num_columns(); ++i) {
      const std::string& name = schema.GetColumnRoot(i)->name();
      const auto same = [&](const std::string& wanted) {
        return strcasecmp(wanted.c_str(), name.c_str()) == 0;
      };
      if (std::ranges::any_of(names, same)) leaves.push_back(i);
    }
    return leaves;
  }

  arrow::CappedMemoryPool pool_;
  std::unique_ptr<parquet::arrow::FileReader> reader_;
  uint64_t most_text_ = 0;
};

}  // namespace
}  // namespace weft

extern "C" __attribute__((visibility("default"))) const char* WeftReadParquet(
    const uint8_t* file, uint64_t bytes, const char* const* columns, uint64_t column_count,
    WeftTakeLines take, void* taker) {
  static thread_local std::string problem;
  try {
    weft::Reader(file, bytes).Read({columns, columns + column_count}, take, taker);
    return nullptr;
  } catch (const parquet::ParquetException& error) {  // Arrow's words may have lines
    problem = "cannot be read, is it whole? " + std::string(error.what());
    std::ranges::replace(problem, '\n', ' ');
  } catch (const std::exception& error) {
    problem = error.what();
  }
  return problem.c_str();
}
