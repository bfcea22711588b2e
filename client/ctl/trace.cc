#include "client/ctl/trace.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "node/core/limits.h"

namespace pando::ctl {
namespace {

using nlohmann::json;

constexpr size_t kLineBytesMax = 64ull << 20;

// Lines of a file that may be compressed: zlib reads plain files as they are.
class LineReader {
 public:
  static absl::StatusOr<LineReader> Open(const std::string& path) {
    errno = 0;
    gzFile file = gzopen(path.c_str(), "rb");
    if (file == nullptr) {
      return absl::NotFoundError(fmt::format("cannot open the trace '{}': {}", path,
                                             errno != 0 ? std::strerror(errno) : "out of memory"));
    }
    gzbuffer(file, 256 << 10);
    return LineReader(path, file);
  }

  // The next line without its newline; nullopt at the end of the file.
  absl::StatusOr<std::optional<std::string_view>> Next() {
    ++line_;
    while (true) {
      const size_t end = buffer_.find('\n', searched_);
      if (end != std::string::npos) return Take(end, end + 1);
      searched_ = buffer_.size();
      if (buffer_.size() - start_ > kLineBytesMax) {
        return absl::InvalidArgumentError(
            Where() +
            fmt::format("the line is longer than {} bytes: is this a trace?", kLineBytesMax));
      }
      buffer_.erase(0, start_);
      searched_ -= start_;
      start_ = 0;
      std::array<char, 64 << 10> chunk;
      const int got = gzread(file_.get(), chunk.data(), static_cast<unsigned>(chunk.size()));
      int code = Z_OK;
      const char* problem = gzerror(file_.get(), &code);
      // A stream that ends too early is only told here, not by gzread's result.
      if (got < 0 || (got == 0 && code != Z_OK && code != Z_STREAM_END)) {
        return absl::DataLossError(fmt::format("{}cannot read on: {}", Where(), problem));
      }
      if (got == 0) return AtEnd();
      buffer_.append(chunk.data(), static_cast<size_t>(got));
    }
  }

  std::string Where() const { return fmt::format("{}:{}: ", path_, line_); }

 private:
  struct Close {
    void operator()(gzFile file) const { gzclose_r(file); }
  };

  LineReader(std::string path, gzFile file) : path_(std::move(path)), file_(file) {}

  std::string_view Take(size_t end, size_t next) {
    const std::string_view line(buffer_.data() + start_, end - start_);
    start_ = next;
    searched_ = next;
    return line;
  }
  // What is left is the last line, if the file does not end with a newline.
  std::optional<std::string_view> AtEnd() {
    if (start_ >= buffer_.size()) return std::nullopt;
    return Take(buffer_.size(), buffer_.size());
  }

  std::string path_;
  std::unique_ptr<gzFile_s, Close> file_;
  std::string buffer_;
  size_t start_ = 0;     // of the next line in buffer_
  size_t searched_ = 0;  // no newline between start_ and here
  uint64_t line_ = 0;
};

// A wrong value, for an error. Its shape only if it has parts: they may be many and deep.
std::string Found(const json& value) {
  if (value.is_structured()) return value.is_array() ? "an array" : "an object";
  constexpr size_t kMost = 40;
  std::string text = value.dump(-1, ' ', /*ensure_ascii=*/true, json::error_handler_t::replace);
  if (text.size() > kMost) text.replace(kMost, std::string::npos, "...");
  return text;
}

// Reads one field, or says in `wrong` why not.
bool ReadUnsigned(const json& object, const char* name, uint64_t max, uint64_t* value,
                  std::string* wrong) {
  const auto field = object.find(name);
  if (field == object.end()) {
    *wrong = fmt::format("the field '{}' is missing", name);
  } else if (!field->is_number_unsigned() || field->get<uint64_t>() > max) {
    *wrong =
        fmt::format("'{}' is {}, expected a whole number from 0 to {}", name, Found(*field), max);
  } else {
    *value = field->get<uint64_t>();
    return true;
  }
  return false;
}

bool ReadTimestamp(const json& object, double* value, std::string* wrong) {
  const auto field = object.find("timestamp");
  if (field == object.end()) {
    *wrong = "the field 'timestamp' is missing";
  } else if (!field->is_number()) {
    *wrong = fmt::format("'timestamp' is {}, expected milliseconds since the start", Found(*field));
  } else {
    *value = field->get<double>();
    return true;
  }
  return false;
}

bool ReadHashIds(const json& object, TraceRequest* request, std::string* wrong) {
  const auto field = object.find("hash_ids");
  if (field == object.end() || !field->is_array()) {
    *wrong = "the field 'hash_ids' is missing or no array";
    return false;
  }
  request->hash_ids.reserve(field->size());
  for (const json& id : *field) {
    if (!id.is_number_unsigned()) {
      *wrong = fmt::format("'hash_ids' contains {}, expected whole numbers from 0", Found(id));
      return false;
    }
    request->hash_ids.push_back(id.get<uint64_t>());
  }
  if (request->hash_ids.size() < request->shared_ids()) {
    *wrong =
        fmt::format("found {} hash_ids for an input_length of {}, expected one for every {} tokens",
                    request->hash_ids.size(), request->input_length, kTokensPerHashId);
    return false;
  }
  return true;
}

// Empty, or what is wrong with the line.
std::string ParseLine(std::string_view line, TraceRequest* request) {
  const json object = json::parse(line, nullptr, /*allow_exceptions=*/false);
  std::string wrong;
  if (!object.is_object()) {
    const std::string_view start = line.substr(0, 40);
    return fmt::format("expected one JSON object, found '{}{}'", start,
                       start.size() < line.size() ? "..." : "");
  }
  (void)(ReadTimestamp(object, &request->timestamp_ms, &wrong) &&
         ReadUnsigned(object, "input_length", limits::kTokensPerPrompt, &request->input_length,
                      &wrong) &&
         ReadUnsigned(object, "output_length", limits::kTokensPerPrompt, &request->output_length,
                      &wrong) &&
         ReadHashIds(object, request, &wrong));
  return wrong;
}

}  // namespace

absl::StatusOr<std::vector<TraceRequest>> ReadTrace(const std::string& path, uint64_t limit) {
  absl::StatusOr<LineReader> reader = LineReader::Open(path);
  if (!reader.ok()) return reader.status();
  std::vector<TraceRequest> requests;
  while (requests.size() < limit) {
    const absl::StatusOr<std::optional<std::string_view>> line = reader->Next();
    if (!line.ok()) return line.status();
    if (!line->has_value()) break;
    if ((*line)->find_first_not_of(" \t\r") == std::string_view::npos) continue;
    TraceRequest request;
    const std::string wrong = ParseLine(**line, &request);
    if (!wrong.empty()) return absl::InvalidArgumentError(reader->Where() + wrong);
    requests.push_back(std::move(request));
  }
  if (requests.empty() && limit > 0) {
    return absl::InvalidArgumentError(fmt::format("the trace '{}' contains no request", path));
  }
  return requests;
}

}  // namespace pando::ctl
