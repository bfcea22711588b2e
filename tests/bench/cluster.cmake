pando_bench(cluster SOURCES cluster_bench.cc DEPS pando_peer_net ZLIB::ZLIB)
