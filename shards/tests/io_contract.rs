//! What every backend promises: the same cases on each of them.

mod contract;
#[macro_use]
mod support;

use contract::cold::*;
use contract::dirs::*;
use contract::files::*;
use contract::sockets::*;
use contract::tasks::*;

on_every_backend!(
    // tasks and time
    sleeps_end_in_order,
    timeout_drops_what_is_late,
    a_wake_up_from_another_thread_arrives,
    abort_ends_a_task_and_join_says_so,
    nobody_starves,
    a_stall_is_counted,
    // files
    a_file_gives_back_what_was_written,
    direct_files_give_back_what_was_written,
    a_write_that_goes_on_behind_a_known_block_arrives_whole,
    unaligned_direct_writes_are_refused,
    reads_stop_at_the_end_of_the_file,
    many_writes_at_once_all_arrive,
    allocate_extends_with_zeros,
    a_file_works_after_rename_and_removal,
    open_errors_are_those_of_the_kernel,
    // directories
    directories_come_and_go,
    atomic_writes_replace_the_whole_file,
    several_files_are_read_in_one_visit,
    a_lock_has_one_holder,
    // sockets
    an_echo_comes_back,
    both_ends_see_a_half_closed_stream,
    large_sends_arrive_whole_and_in_order,
    recv_exact_takes_exactly,
    a_dropped_recv_loses_nothing,
    a_dropped_recv_exact_loses_nothing,
    a_dropped_accept_loses_nothing,
    a_torn_send_is_never_continued,
    recv_waits_while_the_connection_holds_its_buffers,
    an_exhausted_pool_holds_everybody_up_and_then_nobody,
    files_are_sent_whole,
    direct_files_are_sent_too,
    what_is_cold_is_sent_past_the_page_cache_once,
    beside_writes_a_disk_has_one_cold_read_at_a_time,
    peers_that_stop_reading_hold_up_nobody,
    a_peer_that_takes_long_gets_no_memory,
    a_refused_connection_says_so,
    shutdown_wakes_the_reader,
    a_second_listener_on_the_port_is_refused,
);
