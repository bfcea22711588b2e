pando_bench(radix SOURCES radix_bench.cc DEPS pando_radix pando_environment ZLIB::ZLIB PkgConfig::XXHASH)
