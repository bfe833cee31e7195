#include "language/tokenizer/tokenizer.h"

#include <algorithm>

#include "base/check.h"
#include "language/tokenizer/engine.h"
#include "language/tokenizer/marker.h"
#include "language/unicode.h"

namespace weft {

struct Tokenizer::Engine::Sink {
  std::vector<int32_t>* ids = nullptr;
  std::vector<TextSpan>* bytes = nullptr;  // null: nobody wants offsets

  void Add(int32_t id, const AlignedText& text, size_t begin, size_t end) {
    ids->push_back(id);
    if (bytes) bytes->push_back(text.SourceOf(begin, end));
  }
};

Tokenizer::Engine::Engine(std::unique_ptr<TokenizerParts> made_of, const std::string& file)
    : parts(std::move(made_of)) {
  size = parts->model->vocabulary().size();
  for (const AddedToken& token : parts->added) size = std::max(size, token.id + 1);
  added_.assign(static_cast<size_t>(size), -1);
  for (uint32_t i = 0; i < parts->added.size(); ++i) {
    const AddedToken& token = parts->added[i];
    added_[static_cast<size_t>(token.id)] = static_cast<int32_t>(i);
    AlignedText content;
    content.Reset(token.content, 0);
    if (token.normalised) ApplyNormalisers(parts->normalisers, content);
    spelled_.emplace_back(content.text());
    if (content.text().empty()) continue;
    (token.normalised ? normalised_ : raw_).Add(content.text(), i);
  }
  for (const auto* ids : {&parts->post.prefix, &parts->post.suffix}) {
    for (const int32_t id : *ids) {
      if (Text(id).empty()) {
        throw Error(ErrorCode::kCorrupt, file + ": post_processor adds id " + std::to_string(id) +
                                             ", which is no token");
      }
    }
  }
  cuts_at_marker_ = parts->model->CutsAtMarker();
}

const AddedToken* Tokenizer::Engine::Added(int32_t id) const {
  if (id < 0 || id >= size || added_[static_cast<size_t>(id)] < 0) return nullptr;
  return &parts->added[static_cast<size_t>(added_[static_cast<size_t>(id)])];
}

std::string_view Tokenizer::Engine::Text(int32_t id) const {
  const AddedToken* added = Added(id);
  return added ? added->content : parts->model->vocabulary().Text(id);
}

std::string_view Tokenizer::Engine::Spelling(int32_t id) const {
  return Added(id) ? spelled_[static_cast<size_t>(added_[static_cast<size_t>(id)])] : Text(id);
}

std::unique_ptr<Tokenizer::Engine::Scratch> Tokenizer::Engine::Borrow() const {
  const std::lock_guard lock(mutex_);
  if (idle_.empty()) return std::make_unique<Scratch>();
  std::unique_ptr<Scratch> scratch = std::move(idle_.back());
  idle_.pop_back();
  return scratch;
}

void Tokenizer::Engine::Return(std::unique_ptr<Scratch> scratch) const {
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(scratch));
}

void Tokenizer::Engine::EncodeWord(const AlignedText& text, Piece word, Scratch& scratch,
                                   Sink& sink) const {
  const std::string_view bytes = text.text().substr(word.begin, word.end - word.begin);
  const bool cached = bytes.size() <= WordCache::kMaxWordBytes;
  const uint64_t hash = cached ? HashBytes(bytes) : 0;
  std::span<const Token> tokens;
  if (!cached || !scratch.cache.Find(bytes, hash, tokens)) {
    parts->model->Tokenize(bytes, scratch.merge, scratch.tokens);
    tokens = scratch.tokens;
    if (cached) scratch.cache.Insert(bytes, hash, tokens);
  }
  for (const Token& token : tokens) {
    sink.Add(token.id, text, word.begin + token.begin, word.begin + token.end);
  }
}

void Tokenizer::Engine::EncodeWords(AlignedText& text, Scratch& scratch, Sink& sink) const {
  if (text.text().empty()) return;  // all of it was normalised away
  PreTokenize(parts->pre_tokenizers, text, scratch.pieces, scratch.pre_tokenizer);
  for (Piece piece : scratch.pieces) {
    while (cuts_at_marker_) {
      // In front of the first marker behind something else.
      const std::string_view rest = text.text().substr(piece.begin, piece.end - piece.begin);
      size_t cut = 0;
      while (rest.substr(cut).starts_with(kSpaceMarker)) cut += kSpaceMarker.size();
      cut = rest.find(kSpaceMarker, cut);
      if (cut == std::string_view::npos) break;
      const uint32_t middle = piece.begin + static_cast<uint32_t>(cut);
      EncodeWord(text, {piece.begin, middle}, scratch, sink);
      piece.begin = middle;
    }
    if (piece.begin < piece.end) EncodeWord(text, piece, scratch, sink);
  }
}

void Tokenizer::Engine::EncodeSegment(Scratch& scratch, const EncodeOptions& options,
                                      Sink& sink) const {
  AlignedText& text = scratch.text;
  ApplyNormalisers(parts->normalisers, text);
  if (normalised_.empty()) return EncodeWords(text, scratch, sink);
  scratch.normalised.clear();
  normalised_.Split(text.text(), parts->added, !options.parse_special, scratch.normalised);
  for (const auto& [piece, token] : scratch.normalised) {
    if (token >= 0) {
      sink.Add(parts->added[static_cast<size_t>(token)].id, text, piece.begin, piece.end);
    } else {
      scratch.slice.ResetSlice(text, piece.begin, piece.end);
      EncodeWords(scratch.slice, scratch, sink);
    }
  }
}

void Tokenizer::Engine::Encode(std::string_view text, const EncodeOptions& options,
                               Sink& sink) const {
  if (text.size() >= size_t{INT32_MAX}) {
    throw Error(ErrorCode::kInvalidArgument, "a text of " + std::to_string(text.size()) +
                                                 " bytes is too long to encode at once");
  }
  std::string repaired;
  std::vector<TextSpan> alignment;  // of each byte of repaired
  const bool well_formed = IsUtf8(text);
  if (!well_formed) {
    for (size_t position = 0; position < text.size();) {
      const CodePoint next = DecodeCodePoint(text, position);
      AppendCodePoint(next.value, repaired);
      const auto begin = static_cast<int64_t>(position);
      alignment.resize(repaired.size(), TextSpan{begin, begin + next.size});
      position += next.size;
    }
  }
  const std::string_view source = well_formed ? text : repaired;
  const auto reset = [&](AlignedText& aligned, Piece piece) {
    const std::string_view bytes = source.substr(piece.begin, piece.end - piece.begin);
    if (well_formed) {
      aligned.Reset(bytes, piece.begin);
    } else {
      aligned.Reset(bytes, std::span(alignment).subspan(piece.begin, bytes.size()));
    }
  };
  std::unique_ptr<Scratch> scratch = Borrow();
  scratch->raw.clear();
  raw_.Split(source, parts->added, !options.parse_special, scratch->raw);
  for (const auto& [piece, token] : scratch->raw) {
    reset(scratch->text, piece);
    if (token >= 0) {
      sink.Add(parts->added[static_cast<size_t>(token)].id, scratch->text, 0,
               piece.end - piece.begin);
    } else {
      EncodeSegment(*scratch, options, sink);
    }
  }
  Return(std::move(scratch));
}

Tokenizer::Tokenizer(std::unique_ptr<TokenizerParts> parts, const std::string& file)
    : engine_(std::make_unique<const Engine>(std::move(parts), file)) {}
Tokenizer::~Tokenizer() = default;
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;

namespace {

// How many code points at each end of a token's spelling are white space.
struct SpaceEnds {
  int64_t front = 0, back = 0;
};
SpaceEnds CountSpaceEnds(std::string_view token, bool byte_level) {
  const std::u32string codes = ToCodePoints(token);
  const auto is_space = [&](char32_t code) {
    return IsWhiteSpace(code) || (byte_level && code == ByteLevelCodePoint(' '));
  };
  SpaceEnds ends;
  const auto size = static_cast<int64_t>(codes.size());
  while (ends.front < size && is_space(codes[static_cast<size_t>(ends.front)])) ++ends.front;
  while (ends.back < size && is_space(codes[static_cast<size_t>(size - 1 - ends.back)])) {
    ++ends.back;
  }
  return ends;
}

}  // namespace

std::vector<int32_t> Tokenizer::Encode(std::string_view text, const EncodeOptions& options) const {
  std::vector<int32_t> ids;
  ids.reserve(text.size() / 4 + 8);
  if (options.add_special) ids = engine_->parts->post.prefix;
  Engine::Sink sink{&ids, nullptr};
  engine_->Encode(text, options, sink);
  if (options.add_special) {
    ids.insert(ids.end(), engine_->parts->post.suffix.begin(), engine_->parts->post.suffix.end());
  }
  return ids;
}

Encoding Tokenizer::EncodeWithOffsets(std::string_view text, const EncodeOptions& options) const {
  const PostProcessor& post = engine_->parts->post;
  Encoding out;
  Engine::Sink sink{&out.ids, &out.bytes};
  engine_->Encode(text, options, sink);

  // Code points before each byte, and where each begins.
  std::vector<uint32_t> before(text.size() + 1);
  std::vector<uint32_t> begins;
  for (size_t position = 0; position < text.size();) {
    const uint32_t size = DecodeCodePoint(text, position).size;
    for (uint32_t i = 0; i < size; ++i) {
      before[position + i] = static_cast<uint32_t>(begins.size());
    }
    begins.push_back(static_cast<uint32_t>(position));
    position += size;
  }
  before[text.size()] = static_cast<uint32_t>(begins.size());
  begins.push_back(static_cast<uint32_t>(text.size()));

  out.code_points.reserve(out.ids.size());
  for (size_t i = 0; i < out.ids.size(); ++i) {
    TextSpan& span = out.bytes[i];
    TextSpan points = {before[static_cast<size_t>(span.begin)],
                       before[static_cast<size_t>(span.end)]};
    if (post.trim_offsets) {
      // An added token's own text is what it took along in the text.
      const std::string_view spelling =
          engine_->Added(out.ids[i]) ? text.substr(static_cast<size_t>(span.begin),
                                                   static_cast<size_t>(span.end - span.begin))
                                     : engine_->Text(out.ids[i]);
      SpaceEnds space = CountSpaceEnds(spelling, engine_->parts->byte_level);
      const bool first = i == 0 || points.begin == 0;
      if (space.front == 1 && post.keep_first_space && first) space.front = 0;
      points.begin = std::min(points.begin + space.front, points.end);
      if (points.end >= space.back) points.end = std::max(points.end - space.back, points.begin);
      span = {begins[static_cast<size_t>(points.begin)], begins[static_cast<size_t>(points.end)]};
    }
    out.code_points.push_back(points);
  }
  if (options.add_special) {
    const auto add = [&](const std::vector<int32_t>& ids, bool front) {
      const auto place = [&](auto& list) { return front ? list.begin() : list.end(); };
      out.ids.insert(place(out.ids), ids.begin(), ids.end());
      out.bytes.insert(place(out.bytes), ids.size(), TextSpan{});
      out.code_points.insert(place(out.code_points), ids.size(), TextSpan{});
    };
    add(post.prefix, true);
    add(post.suffix, false);
  }
  return out;
}

std::string Tokenizer::Decode(std::span<const int32_t> ids, bool skip_special) const {
  std::string out;
  DecodeState state(engine_->parts->decoders);
  for (const int32_t id : ids) {
    if (skip_special && IsSpecial(id)) continue;
    if (const auto text = engine_->Spelling(id); !text.empty()) state.Add(text, out);
  }
  state.Finish(out);
  return out;
}

int32_t Tokenizer::size() const {
  return engine_->size;
}

std::string_view Tokenizer::Text(int32_t id) const {
  return engine_->Text(id);
}

int32_t Tokenizer::Find(std::string_view token) const {
  for (const AddedToken& added : engine_->parts->added) {
    if (added.content == token) return added.id;
  }
  return engine_->parts->model->vocabulary().Find(token);
}

bool Tokenizer::IsSpecial(int32_t id) const {
  const AddedToken* added = engine_->Added(id);
  return added && added->special;
}

std::span<const int32_t> Tokenizer::prefix() const {
  return engine_->parts->post.prefix;
}

std::span<const int32_t> Tokenizer::suffix() const {
  return engine_->parts->post.suffix;
}

struct StreamDecoder::State {
  const Tokenizer* tokenizer;
  bool skip_special;
  DecodeState decode;
};

StreamDecoder::StreamDecoder(const Tokenizer& tokenizer, bool skip_special)
    : state_(std::make_unique<State>(
          State{&tokenizer, skip_special, DecodeState(tokenizer.engine_->parts->decoders)})) {}
StreamDecoder::~StreamDecoder() = default;
StreamDecoder::StreamDecoder(StreamDecoder&&) noexcept = default;

std::string StreamDecoder::Add(int32_t id) {
  std::string out;
  if (state_->skip_special && state_->tokenizer->IsSpecial(id)) return out;
  const std::string_view text = state_->tokenizer->engine_->Spelling(id);
  if (!text.empty()) state_->decode.Add(text, out);
  return out;
}

std::string StreamDecoder::Finish() {
  std::string out;
  state_->decode.Finish(out);
  return out;
}

std::vector<uint8_t> TokensWithin(const Encoding& encoding, std::span<const TextSpan> spans) {
  std::vector<uint8_t> mask(encoding.ids.size());
  for (size_t i = 0; i < mask.size(); ++i) {
    const TextSpan& token = encoding.code_points[i];
    // The first span that ends behind the token's beginning.
    const auto span = std::ranges::partition_point(
        spans, [&](const TextSpan& other) { return other.end <= token.begin; });
    mask[i] = span != spans.end() && span->begin < token.end && token.begin < token.end;
  }
  return mask;
}

}  // namespace weft
