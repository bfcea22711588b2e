#include "client/ctl/account_view.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "absl/numeric/int128.h"

namespace pando::ctl {

using nlohmann::json;

const char* const kAccountLegend =
    "Tokens of settled requests. prompt = hits + computed; hits = engine + device + host + disk + "
    "peer; failed is part of computed.\n";

uint64_t HitsOf(const v1::Account& account) {
  return account.hit_engine() + account.hit_device() + account.hit_host() + account.hit_disk() +
         account.hit_peer();
}

void AddTo(const v1::Account& more, v1::Account* sum) {
  sum->set_requests(sum->requests() + more.requests());
  sum->set_prompt(sum->prompt() + more.prompt());
  sum->set_hit_engine(sum->hit_engine() + more.hit_engine());
  sum->set_hit_device(sum->hit_device() + more.hit_device());
  sum->set_hit_host(sum->hit_host() + more.hit_host());
  sum->set_hit_disk(sum->hit_disk() + more.hit_disk());
  sum->set_hit_peer(sum->hit_peer() + more.hit_peer());
  sum->set_computed(sum->computed() + more.computed());
  sum->set_failed(sum->failed() + more.failed());
}

json AccountJson(const v1::Account& account) {
  return {{"requests", account.requests()},
          {"tokens",
           {{"prompt", account.prompt()},
            {"hit_engine", account.hit_engine()},
            {"hit_device", account.hit_device()},
            {"hit_host", account.hit_host()},
            {"hit_disk", account.hit_disk()},
            {"hit_peer", account.hit_peer()},
            {"computed", account.computed()}}},
          {"failed", account.failed()}};
}

Table AccountTable(std::vector<std::string> first) {
  std::vector<Table::Align> align(first.size(), Table::kRight);
  align[0] = Table::kLeft;
  for (const char* name : {"requests", "prompt tokens", "hits", "engine", "device", "host", "disk",
                           "peer", "computed", "failed", "hits/prompt"}) {
    first.emplace_back(name);
    align.push_back(Table::kRight);
  }
  return Table(std::move(first), std::move(align));
}

void AccountRow(std::vector<std::string> first, const v1::Account& account, Table* table) {
  for (const uint64_t count :
       {account.requests(), account.prompt(), HitsOf(account), account.hit_engine(),
        account.hit_device(), account.hit_host(), account.hit_disk(), account.hit_peer(),
        account.computed(), account.failed()}) {
    first.push_back(Thousands(count));
  }
  first.push_back(Percent(HitsOf(account), account.prompt()));
  table->Row(std::move(first));
}

std::string AccountProblem(const std::string& whose, const v1::Account& account) {
  absl::uint128 all = account.computed();  // no sum of what a node says may wrap around
  for (const uint64_t hits : {account.hit_engine(), account.hit_device(), account.hit_host(),
                              account.hit_disk(), account.hit_peer()}) {
    all += hits;
  }
  if (all == account.prompt()) return "";
  return fmt::format("the account of {} does not balance: {} prompt tokens, {} hit + {} computed",
                     whose, account.prompt(), HitsOf(account), account.computed());
}

}  // namespace pando::ctl
