#ifndef STASIS_BASE_COMPILER_H
#define STASIS_BASE_COMPILER_H

/*
 * Compiler attributes under short names, and the capability annotations that clang's -Wthread-safety
 * checks. gcc ignores the latter.
 */

#define NODISCARD __attribute__((warn_unused_result))
#define FORMAT(string_index, first_index) __attribute__((format(printf, string_index, first_index)))
#define NORETURN __attribute__((noreturn))
#define PUBLIC __attribute__((visibility("default")))

#ifdef __clang__
#define CAPABILITY(name) __attribute__((capability(name)))
#define GUARDED_BY(lock) __attribute__((guarded_by(lock)))
#define REQUIRES(...) __attribute__((requires_capability(__VA_ARGS__)))
#define EXCLUDES(...) __attribute__((locks_excluded(__VA_ARGS__)))
#define ACQUIRE(...) __attribute__((acquire_capability(__VA_ARGS__)))
#define RELEASE(...) __attribute__((release_capability(__VA_ARGS__)))
#define NO_THREAD_SAFETY_ANALYSIS __attribute__((no_thread_safety_analysis))
#else
#define CAPABILITY(name)
#define GUARDED_BY(lock)
#define REQUIRES(...)
#define EXCLUDES(...)
#define ACQUIRE(...)
#define RELEASE(...)
#define NO_THREAD_SAFETY_ANALYSIS
#endif

#define ARRAY_COUNT(array) (sizeof(array) / sizeof((array)[0]))

#endif
