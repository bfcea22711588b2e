// /metrics against the status that it is made of: every number is there, under its name.
#include "node/runtime/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cstring>
#include <map>
#include <set>
#include <sstream>
#include <string>

#include "node/control/counters.h"

namespace pando::runtime {
namespace {

using Samples = std::map<std::string, double>;  // "name{labels}": value

Samples Read(const std::string& text) {
  Samples samples;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line[0] == '#') continue;
    const size_t space = line.rfind(' ');
    const bool added =
        samples.emplace(line.substr(0, space), std::stod(line.substr(space + 1))).second;
    EXPECT_TRUE(added) << "twice: " << line;
  }
  return samples;
}

Samples MetricsOf(const CoreStatus& core) {
  MetricsInput input;
  input.core = core;
  return Read(MetricsText(input));
}

constexpr size_t kCounterWords = sizeof(CoreCounters) / sizeof(uint64_t);
using CounterWords = std::array<uint64_t, kCounterWords>;

// Also one that is added later: who forgets to name it here finds out.
TEST(CountersTest, EveryMemberHasAName) {
  CounterWords words{};
  std::set<uint64_t> values;
  for (size_t i = 0; i < kCounterWords; ++i) values.insert(words[i] = 1000 + i);
  const auto counters = std::bit_cast<CoreCounters>(words);
  for (const control::NamedCounter& counter : control::kCounters) {
    EXPECT_EQ(values.erase(counter.value(counters)), 1u) << counter.name << " " << counter.reason;
  }
  EXPECT_THAT(values, testing::IsEmpty()) << "members (1000 + place) without a name";
}

TEST(MetricsTest, EveryCounterIsThere) {
  CounterWords words{};
  for (size_t i = 0; i < kCounterWords; ++i) words[i] = 1000 + i;
  CoreStatus core;
  core.counters = std::bit_cast<CoreCounters>(words);
  Samples samples = MetricsOf(core);
  for (const control::NamedCounter& counter : control::kCounters) {
    std::string name = std::string("pando_") + counter.name + "_total";
    if (*counter.reason != '\0') name += std::string("{reason=\"") + counter.reason + "\"}";
    ASSERT_TRUE(samples.contains(name)) << name;
    EXPECT_EQ(samples[name], static_cast<double>(counter.value(core.counters))) << name;
  }
}

PeerStatus SomePeer(const std::string& name, uint64_t base) {
  PeerStatus peer;
  peer.name = name;
  peer.address = "host:" + std::to_string(base);
  peer.boot = BootId(base);
  peer.state = PeerState::kConnected;
  peer.view_complete = true;
  peer.blocks = base + 1;
  peer.prefilling = base + 2;
  peer.heard_ago = static_cast<Nanos>(base + 3) * 1'000'000'000;
  peer.closed_for = static_cast<Nanos>(base + 4) * 1'000'000'000;
  peer.bytes_per_s = static_cast<double>(base + 5);
  peer.grants_asked = 3 * base;
  peer.grants_missed = base + 6;
  peer.grants_refused = base + 7;
  peer.pulls = base + 8;
  peer.pages_pulled = base + 9;
  peer.bytes_pulled = base + 10;
  peer.pages_bad = base + 11;
  peer.pages_failed = base + 12;
  peer.pull_micros = (base + 13) * 1'000'000;
  return peer;
}

CoreStatus SomeCluster() {
  CoreStatus core;
  core.cluster.started = true;
  core.cluster.granted_bytes = 21;
  core.cluster.guests = 22;
  core.cluster.feeds = 23;
  core.cluster.told_blocks = 24;
  core.cluster.directory_blocks = 25;
  core.cluster.directory_bytes = 26;
  core.cluster.fetches = 27;
  core.cluster.peers = {SomePeer("b", 100), SomePeer("c", 200)};
  core.cluster.peers.emplace_back().state = PeerState::kSelf;
  return core;
}

TEST(MetricsTest, TheClusterIsThere) {
  const Samples samples = MetricsOf(SomeCluster());
  const Samples expected = {{"pando_granted_bytes", 21},
                            {"pando_guests", 22},
                            {"pando_feeds", 23},
                            {"pando_told_blocks", 24},
                            {"pando_directory_blocks", 25},
                            {"pando_directory_bytes", 26},
                            {"pando_fetches_open", 27},
                            {"pando_peers{state=\"connected\"}", 2},
                            {"pando_peers{state=\"connecting\"}", 0},
                            {"pando_peers{state=\"incompatible\"}", 0},
                            {"pando_peers{state=\"self\"}", 1}};
  for (const auto& [name, value] : expected) {
    ASSERT_TRUE(samples.contains(name)) << name;
    EXPECT_EQ(samples.at(name), value) << name;
  }
}

TEST(MetricsTest, WhatTheSocketsCountIsThere) {
  WireCounters wire;
  wire.control = {31, 32, 33, 34, 35};
  wire.data = {.pages_sent = 41,
               .bytes_sent = 42,
               .refused_grants = 43,
               .refused_pages = 44,
               .messages_refused = 45,
               .connections = 460,
               .connections_closed = 470,
               .connections_stalled = 48,
               .connections_unread = 49,
               .connections_refused = 50,
               .offers_refused = 51,
               .pulls_refused = 52,
               .registrations_failed = 53};
  MetricsInput input;
  input.core = SomeCluster();
  input.wire = wire;
  const Samples samples = Read(MetricsText(input));
  const Samples expected = {{"pando_peer_calls_total", 31},
                            {"pando_peer_feeds_total", 32},
                            {"pando_peer_calls_refused_total{reason=\"busy\"}", 33},
                            {"pando_peer_calls_refused_total{reason=\"malformed\"}", 34},
                            {"pando_peer_calls_gone_total", 35},
                            {"pando_transfer_sent_pages_total", 41},
                            {"pando_transfer_sent_bytes_total", 42},
                            {"pando_transfer_refused_total{what=\"grant\"}", 43},
                            {"pando_transfer_refused_total{what=\"page\"}", 44},
                            {"pando_transfer_refused_total{what=\"message\"}", 45},
                            {"pando_transfer_connections_total", 460},
                            {"pando_transfer_connections_closed_total{cause=\"stalled\"}", 48},
                            {"pando_transfer_connections_closed_total{cause=\"unread\"}", 49},
                            {"pando_transfer_connections_closed_total{cause=\"other\"}", 373},
                            {"pando_transfer_connections_refused_total", 50},
                            {"pando_transfer_overloaded_total", 103},
                            {"pando_transfer_registrations_failed_total", 53}};
  for (const auto& [name, value] : expected) {
    ASSERT_TRUE(samples.contains(name)) << name;
    EXPECT_EQ(samples.at(name), value) << name;
  }
}

TEST(MetricsTest, EveryPeerIsThere) {
  const Samples samples = MetricsOf(SomeCluster());
  for (const PeerStatus& peer : {SomePeer("b", 100), SomePeer("c", 200)}) {
    const double base = peer.address == "host:100" ? 100 : 200;
    const auto expect = [&](const std::string& name, const std::string& more, double value) {
      const std::string sample = "pando_" + name + "{peer=\"" + peer.name + "\",address=\"" +
                                 peer.address + "\"" + more + "}";
      ASSERT_TRUE(samples.contains(sample)) << sample;
      EXPECT_DOUBLE_EQ(samples.at(sample), value) << sample;
    };
    expect("peer_connected", "", 1);
    expect("peer_view_complete", "", 1);
    expect("peer_blocks", "", base + 1);
    expect("peer_prefilling_blocks", "", base + 2);
    expect("peer_heard_seconds", "", base + 3);
    expect("peer_breaker_open_seconds", "", base + 4);
    expect("peer_pull_rate_bytes_per_second", "", base + 5);
    expect("peer_grants_asked_total", ",answer=\"given\"", base - 13);
    expect("peer_grants_asked_total", ",answer=\"missed\"", base + 6);
    expect("peer_grants_asked_total", ",answer=\"refused\"", base + 7);
    expect("peer_pulls_total", "", base + 8);
    expect("peer_pull_pages_total", ",outcome=\"arrived\"", base + 9);
    expect("peer_pull_bytes_total", "", base + 10);
    expect("peer_pull_pages_total", ",outcome=\"bad\"", base + 11);
    expect("peer_pull_pages_total", ",outcome=\"failed\"", base + 12);
    expect("peer_pull_seconds_total", "", base + 13);
  }
}

// FAULTS F7: peers that call themselves the same, or drive a terminal, make no broken text.
TEST(MetricsTest, NamesOfPeersAreTheirOwnAffair) {
  CoreStatus core = SomeCluster();
  core.cluster.peers[0].name = core.cluster.peers[1].name = "x\"} 1\npando_ready 7 #\\";
  EXPECT_EQ(MetricsOf(core).size(), MetricsOf(SomeCluster()).size());
}

TEST(MetricsTest, WithoutAClusterThereIsNothingOfIt) {
  for (const auto& [name, value] : MetricsOf(CoreStatus())) {
    EXPECT_EQ(name.find("pando_peer"), name.starts_with("pando_peer_pages") ? 0 : std::string::npos)
        << name;
  }
}

}  // namespace
}  // namespace pando::runtime
