#include "client/ctl/trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "client/ctl/prompt_tokens.h"
#include "tests/paths.h"

namespace pando::ctl {
namespace {

using ::testing::HasSubstr;

constexpr const char* kGood =
    R"({"timestamp": 5, "input_length": 513, "output_length": 2, "hash_ids": [7, 8]})";

class TraceTest : public ::testing::Test {
 protected:
  TraceTest() {
    std::string pattern = std::filesystem::temp_directory_path() / "pando-trace-XXXXXX";
    EXPECT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  ~TraceTest() override { std::filesystem::remove_all(folder_); }

  std::string Write(const std::string& text) {
    std::string path = folder_ / "trace.jsonl";
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }
  std::string ErrorOf(const std::string& text) {
    return std::string(ReadTrace(Write(text)).status().message());
  }

  std::filesystem::path folder_;
};

TEST_F(TraceTest, ReadsThePublishedTraceWhole) {
  const auto trace = ReadTrace(PANDO_TEST_DATA "/conversation_trace.jsonl.gz");
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(trace->size(), 12'031u);
  uint64_t ids = 0;
  uint64_t input = 0;
  uint64_t output = 0;
  std::set<uint64_t> unique;
  for (const TraceRequest& request : *trace) {
    ids += request.hash_ids.size();
    input += request.input_length;
    output += request.output_length;
    unique.insert(request.hash_ids.begin(), request.hash_ids.end());
  }
  EXPECT_EQ(ids, 288'500u);
  EXPECT_EQ(unique.size(), 182'790u);
  EXPECT_EQ(input / trace->size(), 12'035u);
  EXPECT_EQ(output / trace->size(), 342u);
  EXPECT_EQ(trace->front().input_length, 6758u);
  EXPECT_EQ(trace->front().shared_ids(), 13u);
}

TEST_F(TraceTest, ReadsPlainFilesWithAndWithoutFinalNewlineAndEmptyLines) {
  for (const std::string end : {"", "\n", "\n\n", "\r\n"}) {
    const auto trace = ReadTrace(Write(std::string(kGood) + "\n" + kGood + end));
    ASSERT_TRUE(trace.ok()) << trace.status();
    ASSERT_EQ(trace->size(), 2u);
    EXPECT_EQ(trace->back().hash_ids, (std::vector<uint64_t>{7, 8}));
    EXPECT_EQ(trace->back().shared_ids(), 1u);
  }
}

TEST_F(TraceTest, StopsAtTheLimitAndLooksNoFurther) {
  const auto trace = ReadTrace(Write(std::string(kGood) + "\nrubbish\n"), 1);
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(trace->size(), 1u);
}

// FAULTS G5: says which line, what was found, what was expected.
TEST_F(TraceTest, NamesTheLineThatIsWrong) {
  const std::string good = std::string(kGood) + "\n";
  EXPECT_THAT(ErrorOf(good + "{\"timestamp\": \n"), HasSubstr("trace.jsonl:2: expected one JSON"));
  EXPECT_THAT(ErrorOf(good + good + "[]"), HasSubstr("trace.jsonl:3: expected one JSON object"));
  EXPECT_THAT(ErrorOf(R"({"timestamp": 1, "output_length": 2, "hash_ids": []})"),
              HasSubstr("trace.jsonl:1: the field 'input_length' is missing"));
  EXPECT_THAT(ErrorOf(R"({"input_length": 1, "output_length": 2, "hash_ids": []})"),
              HasSubstr("the field 'timestamp' is missing"));
  EXPECT_THAT(
      ErrorOf(R"({"timestamp": 1, "input_length": -1, "output_length": 2, "hash_ids": []})"),
      HasSubstr("'input_length' is -1, expected a whole number from 0 to 1048576"));
  EXPECT_THAT(
      ErrorOf(R"({"timestamp": 1, "input_length": 1048577, "output_length": 2, "hash_ids": []})"),
      HasSubstr("'input_length' is 1048577, expected"));
  EXPECT_THAT(
      ErrorOf(R"({"timestamp": 1, "input_length": 1, "output_length": 2, "hash_ids": [0, "a"]})"),
      HasSubstr("'hash_ids' contains \"a\""));
  EXPECT_THAT(
      ErrorOf(R"({"timestamp": 1, "input_length": 1024, "output_length": 2, "hash_ids": [0]})"),
      HasSubstr("found 1 hash_ids for an input_length of 1024"));
  EXPECT_THAT(ErrorOf("\n\n"), HasSubstr("contains no request"));
}

// A wrong value may be of any size and depth; the error stays short.
TEST_F(TraceTest, NamesAWrongValueHoweverDeepItIs) {
  const std::string deep = std::string(200'000, '[') + std::string(200'000, ']');
  const std::string end = R"(, "output_length": 2, "hash_ids": []})";
  EXPECT_THAT(ErrorOf(R"({"timestamp": )" + deep + R"(, "input_length": 1)" + end),
              HasSubstr("'timestamp' is an array, expected"));
  EXPECT_THAT(ErrorOf(R"({"timestamp": 1, "input_length": )" + deep + end),
              HasSubstr("'input_length' is an array, expected"));
  EXPECT_THAT(ErrorOf(R"({"timestamp": 1, "input_length": 1, "output_length": 2, "hash_ids": [)" +
                      deep + "]}"),
              HasSubstr("'hash_ids' contains an array, expected"));
  EXPECT_THAT(ErrorOf(R"({"timestamp": 1, "input_length": ")" + std::string(1000, 'x') + '"' + end),
              HasSubstr("xxx..., expected"));
}

TEST_F(TraceTest, SaysWhenAFileCannotBeRead) {
  EXPECT_EQ(ReadTrace(folder_ / "none").status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(ReadTrace(folder_ / "none").status().message()),
              HasSubstr("none': No such file"));
  EXPECT_THAT(std::string(ReadTrace(folder_).status().message()), HasSubstr("cannot read on"));
}

// FAULTS G6: a trace that was cut off is not half of a trace.
TEST_F(TraceTest, RefusesACompressedFileThatIsCutOff) {
  const std::string path = folder_ / "cut.gz";
  std::filesystem::copy_file(PANDO_TEST_DATA "/conversation_trace.jsonl.gz", path);
  std::filesystem::resize_file(path, std::filesystem::file_size(path) / 2);
  const auto trace = ReadTrace(path);
  EXPECT_EQ(trace.status().code(), absl::StatusCode::kDataLoss) << trace.status();
  EXPECT_THAT(std::string(trace.status().message()), HasSubstr("cut.gz:"));
}

std::vector<uint32_t> TokensOf(const TraceRequest& request, uint64_t index, uint64_t seed) {
  std::vector<uint32_t> tokens;
  MakeTokens(request, index, seed, &tokens);
  return tokens;
}

size_t CommonPrefix(const std::vector<uint32_t>& a, const std::vector<uint32_t>& b) {
  return static_cast<size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first -
                             a.begin());
}

TEST(PromptTokensTest, FullIdsAreSharedAndTheRestIsUnique) {
  const TraceRequest a{0, 1300, 1, {1, 2, 3}};
  const TraceRequest b{0, 1500, 1, {1, 2, 3}};
  const TraceRequest c{0, 1300, 1, {1, 9, 3}};
  ASSERT_EQ(TokensOf(a, 0, 0).size(), 1300u);
  EXPECT_EQ(CommonPrefix(TokensOf(a, 0, 0), TokensOf(b, 1, 0)), 1024u);
  EXPECT_EQ(CommonPrefix(TokensOf(a, 0, 0), TokensOf(a, 5, 0)), 1024u) << "another request";
  EXPECT_EQ(CommonPrefix(TokensOf(a, 0, 0), TokensOf(c, 1, 0)), 512u);
  EXPECT_EQ(TokensOf(a, 3, 7), TokensOf(a, 3, 7));
  EXPECT_EQ(CommonPrefix(TokensOf(a, 3, 7), TokensOf(a, 3, 8)), 0u) << "another seed";
  EXPECT_TRUE(TokensOf({0, 0, 0, {}}, 0, 0).empty());
}

}  // namespace
}  // namespace pando::ctl
