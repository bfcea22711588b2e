#include "node/runtime/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "node/runtime/log_format.h"

namespace pando::runtime {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::variant<Options, Exit> Parse(const std::vector<std::string>& args) {
  std::vector<const char*> argv = {"pando-node"};
  for (const std::string& arg : args) argv.push_back(arg.c_str());
  return ParseOptions(static_cast<int>(argv.size()), argv.data());
}

Options Parsed(const std::vector<std::string>& args) {
  auto result = Parse(args);
  if (const auto* exit = std::get_if<Exit>(&result)) {
    ADD_FAILURE() << exit->text;
    return {};
  }
  return std::get<Options>(result);
}

// What the refusal says; its exit code is the configuration's.
std::string Refused(const std::vector<std::string>& args) {
  auto result = Parse(args);
  const auto* exit = std::get_if<Exit>(&result);
  if (exit == nullptr) return "not refused";
  EXPECT_EQ(exit->code, kExitConfig);
  return exit->text;
}

class OptionsFile : public testing::Test {
 protected:
  OptionsFile() {
    std::string folder = "/tmp/pando-test-XXXXXX";
    EXPECT_NE(::mkdtemp(folder.data()), nullptr);
    folder_ = folder;
  }
  ~OptionsFile() override { std::filesystem::remove_all(folder_); }
  std::string Write(const std::string& name, const std::string& text) {
    const std::string path = folder_ / name;
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }
  std::filesystem::path folder_;
};

TEST(Options, FlagsAndTheirDefaults) {
  const Options defaults = Parsed({});
  EXPECT_EQ(defaults.socket, "/run/pando/node.sock");
  EXPECT_EQ(defaults.admin, "/run/pando/admin.sock");
  EXPECT_EQ(defaults.host_slab, Bytes(1ull << 30));
  EXPECT_EQ(defaults.metrics_host, "") << "off unless asked for";

  const Options set =
      Parsed({"--name", "n-1", "--socket", "unix:/tmp/a/x.sock", "--host-slab", "130MiB",
              "--space-share", "0.5", "--metrics-listen", "9100", "--log-level", "warning",
              "--drain-timeout", "12", "--pause-at", "acquire.leased:3"});
  EXPECT_EQ(set.name, "n-1");
  EXPECT_EQ(set.socket, "/tmp/a/x.sock");
  EXPECT_EQ(set.admin, "/tmp/a/admin.sock");
  EXPECT_EQ(set.host_slab, Bytes(128ull << 20)) << "whole extents";
  EXPECT_EQ(set.space_share, 0.5);
  EXPECT_EQ(set.metrics_host, "127.0.0.1") << "loopback unless told otherwise";
  EXPECT_EQ(set.metrics_port, 9100);
  EXPECT_EQ(set.log_level, LogLine::Level::kWarning);
  EXPECT_EQ(set.drain_timeout_ms, 12);
  EXPECT_EQ(set.pause_at, "acquire.leased");
  EXPECT_EQ(set.pause_count, 3u);
  EXPECT_EQ(Parsed({"--name", "a", "--name", "b"}).name, "b") << "the last one counts";
}

TEST(Options, WhereMetricsListen) {
  EXPECT_EQ(Parsed({"--metrics-listen", "0.0.0.0:0"}).metrics_host, "0.0.0.0");
  EXPECT_EQ(Parsed({"--metrics-listen", "[::1]:7"}).metrics_host, "::1");
  EXPECT_EQ(Parsed({"--metrics-listen", ":7"}).metrics_host, "127.0.0.1");
}

// FAULTS G5: refused by name, with what is allowed.
TEST(Options, ImpossibleValues) {
  EXPECT_THAT(Refused({"--host-slab", "63MiB"}), AllOf(HasSubstr("--host-slab"), HasSubstr("63MiB"),
                                                       HasSubstr("at least one extent")));
  EXPECT_THAT(Refused({"--host-slab", "lots"}), HasSubstr("--host-slab"));
  EXPECT_THAT(Refused({"--host-slab", "-1"}), HasSubstr("--host-slab"));
  for (const char* share : {"0", "1.1", "-1", "nan", "x"}) {
    EXPECT_THAT(Refused({"--space-share", share}), HasSubstr("--space-share")) << share;
  }
  EXPECT_THAT(Refused({"--metrics-listen", "127.0.0.1:65536"}), HasSubstr("--metrics-listen"));
  EXPECT_THAT(Refused({"--metrics-listen", "localhost"}), HasSubstr("--metrics-listen"));
  EXPECT_THAT(Refused({"--log-level", "loud"}),
              AllOf(HasSubstr("--log-level"), HasSubstr("debug, info, warning, error")));
  EXPECT_THAT(Refused({"--drain-timeout", "-1"}), HasSubstr("--drain-timeout"));
  EXPECT_THAT(Refused({"--name", "a b"}), HasSubstr("--name"));
  EXPECT_THAT(Refused({"--pause-at", "nowhere"}),
              AllOf(HasSubstr("--pause-at"), HasSubstr("--list-steps")));
  EXPECT_THAT(Refused({"--pause-at", "acquire.leased:0"}), HasSubstr("--pause-at"));
  EXPECT_THAT(Refused({"--key-secret", "/nonexistent"}),
              AllOf(HasSubstr("--key-secret"), HasSubstr("/nonexistent")));
  EXPECT_THAT(Refused({"--admin", "/tmp/x", "--socket", "/tmp/x"}), HasSubstr("--admin"));
  EXPECT_THAT(Refused({"--hots-slab", "1GiB"}), HasSubstr("--hots-slab"));
}

TEST_F(OptionsFile, AFileSaysWhatFlagsSayAndFlagsWin) {
  const std::string file = Write("pando.toml",
                                 "name = \"from-file\"\n"
                                 "host-slab = \"256MiB\"\n"
                                 "space-share = 0.25\n");
  const Options options = Parsed({"--config", file, "--name", "from-flag"});
  EXPECT_EQ(options.name, "from-flag");
  EXPECT_EQ(options.host_slab, Bytes(256ull << 20));
  EXPECT_EQ(options.space_share, 0.25);
}

// FAULTS G5
TEST_F(OptionsFile, UnknownKeysAreRefusedByName) {
  const std::string file = Write("pando.toml", "hots-slab = \"256MiB\"\n");
  EXPECT_THAT(Refused({"--config", file}),
              AllOf(HasSubstr("hots-slab"), HasSubstr("host-slab"), HasSubstr("metrics-listen")));
  EXPECT_THAT(Refused({"--config", folder_ / "missing"}), HasSubstr("missing"));
}

// FAULTS G5: what a lenient reader would take for something else.
TEST_F(OptionsFile, OddFilesAreRefused) {
  const auto refused = [&](const std::string& text) {
    const std::string why = Refused({"--config", Write("odd.toml", text)});
    EXPECT_THAT(why, AllOf(HasSubstr("--config: "), HasSubstr("allowed"))) << text;
    return why;
  };
  for (const char* twice : {"name = \"a\"\nname = \"b\"\n", "name = [1,2]\n", "name = a b\n",
                            "name = \"a\"\nspace-share = 1\nname = \"b\"\n"}) {
    EXPECT_THAT(refused(twice), AllOf(HasSubstr("name: "), HasSubstr("one value"))) << twice;
  }
  EXPECT_THAT(refused("name = \"a#b\"\n"), AllOf(HasSubstr("name: "), HasSubstr("comment")));
  EXPECT_THAT(refused("[node]\nname = \"a\"\n"), HasSubstr("[node]"));
  EXPECT_THAT(refused(std::string("\x7f"
                                  "ELF\x02\0\0\x01name=",
                                  13)),
              HasSubstr("no text"));
  EXPECT_THAT(Refused({"--config", ""}), AllOf(HasSubstr("--config"), HasSubstr("allowed")));
  EXPECT_THAT(Refused({"--config", folder_}),
              AllOf(HasSubstr("--config"), HasSubstr("directory"), HasSubstr("allowed")));
  EXPECT_THAT(Refused({"--config", folder_ / "none"}),
              AllOf(HasSubstr("--config"), HasSubstr("No such file"), HasSubstr("allowed")));
}

// FAULTS G5: what never ends, or never begins, does not hold up the start.
TEST_F(OptionsFile, OnlyRegularFilesOfSomeLengthAreRead) {
  const std::string pipe = folder_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  for (const char* flag : {"--config", "--key-secret"}) {
    for (const std::string& path : {std::string("/dev/zero"), pipe}) {
      EXPECT_THAT(Refused({flag, path}), AllOf(HasSubstr(flag), HasSubstr(path),
                                               HasSubstr("a pipe, a device"), HasSubstr("regular")))
          << flag;
    }
  }
  const std::string most(1u << 20, '#');
  EXPECT_EQ(Parsed({"--config", Write("most.toml", most)}).name, Parsed({}).name);
  EXPECT_THAT(Refused({"--config", Write("more.toml", most + "#")}),
              AllOf(HasSubstr("larger"), HasSubstr("1048576 bytes")));
}

// FAULTS G5
TEST_F(OptionsFile, ALongLineIsNotRepeated) {
  const std::string line(100'000, 'x');
  for (const std::string& text :
       {line, line + " = 1", "name = " + line, "name = [" + line + "," + line, "[" + line + "]",
        "name = \"" + line, "host-slab = \"" + line + "\""}) {
    const std::string why = Refused({"--config", Write("long.toml", text + "\n")});
    EXPECT_THAT(why, HasSubstr("allowed"));
    EXPECT_THAT(why, testing::Not(HasSubstr(std::string(129, 'x'))));
  }
  EXPECT_LT(Refused({"--config", Write("flag.toml", "insecure-peers = " + line)}).size(), 400u);
}

// FAULTS G5
TEST_F(OptionsFile, OddPathsAreRefused) {
  for (const char* flag : {"--socket", "--admin", "--key-secret"}) {
    for (const char* path : {"/tmp/a\nb", "/tmp/a\x7f", "/tmp/\x1b[1m"}) {
      const std::string why = Refused({flag, path});
      EXPECT_THAT(why, AllOf(HasSubstr(std::string(flag) + ": found"), HasSubstr("allowed")));
      EXPECT_EQ(why.find('\n'), why.size() - 1) << "quoted in one line";
    }
  }
  EXPECT_THAT(Refused({"--socket", ""}), HasSubstr("--socket"));
  EXPECT_THAT(Refused({"--socket", folder_ / "s", "--admin", folder_ / "." / "s"}),
              AllOf(HasSubstr("--admin"), HasSubstr("other than --socket's")));
  std::filesystem::create_symlink("loop", folder_ / "loop");
  EXPECT_EQ(Parsed({"--socket", folder_ / "loop" / "s"}).admin, folder_ / "loop" / "admin.sock")
      << "what cannot be looked up is not equal";
}

TEST_F(OptionsFile, TheSecretIsReadAndNeverPrinted) {
  const Options options = Parsed({"--key-secret", Write("secret", "hunter2\n")});
  EXPECT_EQ(options.key_secret, "hunter2");
  for (const auto& [key, value] : Describe(options)) {
    EXPECT_EQ(value.find("hunter2"), std::string::npos);
    if (key == "key_secret") {
      EXPECT_EQ(value, "set");
    }
  }
  EXPECT_THAT(Refused({"--key-secret", Write("empty", "")}), HasSubstr("--key-secret"));
  EXPECT_THAT(Refused({"--key-secret", Write("long", std::string(4097, 'x'))}),
              HasSubstr("1 to 4096"));
}

TEST(FormatLine, KeepsOneLineWhateverTheValuesAre) {
  LogLine line;
  line.event = "replica.attached";
  line.fields = {{"a", "plain-1.2/x:y"}, {"b", ""}, {"c", "two words"}, {"d", "x=\"\\\n\xff"}};
  EXPECT_EQ(FormatLine(line),
            "replica.attached a=plain-1.2/x:y b=\"\" c=\"two words\" d=\"x=\\\"\\\\\\x0a\\xff\"");
}

}  // namespace
}  // namespace pando::runtime
