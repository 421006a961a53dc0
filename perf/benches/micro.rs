//! `cargo bench -p ringmain-perf`: what the parts of a broker cost. `RINGMAIN_BENCH_DIR` names the folder, and so the
//! disk, for appends; the system's folder for temporary files otherwise.
#![allow(clippy::unwrap_used, missing_docs, reason = "a benchmark")]

use criterion::{Criterion, Throughput, criterion_group, criterion_main};

fn steady(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("steady");
    for mut work in perf::steady::all().unwrap() {
        group.throughput(if work.bytes > 0 {
            Throughput::Bytes(work.bytes)
        } else {
            Throughput::Elements(1)
        });
        group.bench_function(work.name, |bencher| bencher.iter(|| (work.run)()));
    }
    group.finish();
}

fn hop(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("hop");
    group.sample_size(10).throughput(Throughput::Elements(1));
    for depth in [1, 32] {
        group.bench_function(
            format!("call to another core and back, {depth} at a time"),
            |bencher| {
                bencher.iter_custom(|count| perf::hop::time(depth, count).unwrap());
            },
        );
    }
    group.finish();
}

fn append(criterion: &mut Criterion) {
    let folder = std::env::var_os("RINGMAIN_BENCH_DIR").map_or_else(std::env::temp_dir, Into::into);
    let mut group = criterion.benchmark_group("append");
    group.sample_size(10);
    for appends in perf::disk::APPENDS {
        group.throughput(Throughput::Bytes(appends.bytes as u64));
        group.bench_function(appends.name, |bencher| {
            bencher.iter_custom(|count| perf::disk::time(appends, count, &folder).unwrap());
        });
    }
    group.finish();
}

criterion_group!(benches, steady, hop, append);
criterion_main!(benches);
