// Seeds that are files: traces and configurations.
#include <zlib.h>

#include <string>

#include "radix/base/check.h"
#include "tests/fuzz/seeds.h"

namespace pando::fuzz {
namespace {

constexpr const char* kTrace =
    R"({"timestamp": 0, "input_length": 1100, "output_length": 50, "hash_ids": [0, 1, 2]})"
    "\n"
    R"({"timestamp": 2.5e3, "input_length": 513, "output_length": 1, "hash_ids": [0, 7]})"
    "\n\n";

std::string Compressed(const std::string& text) {
  z_stream stream{};
  constexpr int kGzip = 15 + 16;
  PANDO_CHECK(deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, kGzip, 8, Z_DEFAULT_STRATEGY) ==
              Z_OK)
      << "no zlib";
  std::string out(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  PANDO_CHECK(deflate(&stream, Z_FINISH) == Z_STREAM_END) << "no room";
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

constexpr const char* kConfig = R"(# a node
name = "host-1"
socket = "unix:/run/pando/node.sock"
admin = "/run/pando/a.sock"
host-slab = 2GiB
space-share = 0.5
metrics-listen = "127.0.0.1:9464"
log-level = "debug"
drain-timeout = 100
peer-listen = "127.0.0.1:7301"
data-listen = "[::1]:7302"
peers = "host-1:7301,[::1]:7302"
no-sharing = true
pause-at = "drain.started:2"
)";

constexpr const char* kFlags =
    "--name\na.b-c_1\n--host-slab=65M\n--peer-listen=0.0.0.0:1\n--insecure-peers\n"
    "--peers=dns:pando.local:7301\n--metrics-listen=[::1]:0\n--data-listen=10.0.0.1:0\n";

}  // namespace

std::vector<Seed> FileSeeds() {
  return {{"trace_file", "plain", kTrace},
          {"trace_file", "compressed", Compressed(kTrace)},
          {"config_file", "file", std::string(1, '\0') + kConfig},
          {"config_file", "flags", std::string("f") + kFlags},
          {"config_file", "steps", "f--list-steps"}};
}

}  // namespace pando::fuzz
