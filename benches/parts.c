/* The two ends of the measurements of side-by-side: what a wrapper starts, and what reads it.
 *
 *     now                    the monotonic clock, ns, at the first line of main
 *     lines MIB              so many MiB of 80-byte lines, by 64 KiB writes
 *     log MiB                so many MiB of a program's log: dates, numbers, paths, no progress
 *     writes N FILE          N writes of one line; FILE gets what they took, ns
 *     stamps N PAUSE_US      N lines with the monotonic clock of their write
 *     ages                   reads such lines; prints the age of each on arrival, ns
 *     terminal CMD...        runs CMD on a terminal of its own, reads that to the end as a
 *                            terminal does, prints the bytes
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pty.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LINE = 80, BLOCK = 64 * 1024 };

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void fail(const char *what)
{
	fprintf(stderr, "parts: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void write_all(const char *bytes, size_t left)
{
	while (left > 0) {
		ssize_t n = write(1, bytes, left);

		if (n < 0)
			fail("write");
		bytes += n;
		left -= (size_t)n;
	}
}

static void lines(size_t mib)
{
	static char block[BLOCK * LINE / 16];
	size_t left = mib << 20;

	for (size_t i = 0; i < sizeof block; i++)
		block[i] = i % LINE == LINE - 1 ? '\n' : (char)('a' + i % 26);
	for (size_t at = 0; left > 0; at = (at + BLOCK) % sizeof block) {
		size_t n = left < BLOCK ? left : BLOCK;

		write_all(block + at, n);
		left -= n;
	}
}

static void log_lines(size_t mib)
{
	static const char *const said[] = {
		"GET /static/app.9f3c1e.js HTTP/1.1 200 18231 \"-\" 0.004",
		"cc -O2 -Wall -c src/net/tcp_input.c -o build/net/tcp_input.o",
		"connected to 10.12.0.41:5432 (server 14.11), pool 7 of 32 in use",
		"cache: 81.4% hits, 18.6% misses, 1,204,331 entries",
		"moved /data/2026/11/30/part-00017.parquet, 134217728 bytes",
		"error: 0.12 expected below 0.10, retrying in 2.5 s (attempt 3)",
	};
	static char block[BLOCK];
	size_t left = mib << 20;
	unsigned long n = 0;

	while (left > 0) {
		size_t at = 0;

		while (at < sizeof block - 160) {
			unsigned long s = n / 40 % 86400;

			at += (size_t)sprintf(block + at,
				"2026-11-30 %02lu:%02lu:%02lu,%03lu INFO [worker-%lu] %s\n", s / 3600,
				s / 60 % 60, s % 60, n * 25 % 1000, n % 8, said[n % 6]);
			n++;
		}
		at = at < left ? at : left;
		write_all(block, at);
		left -= at;
	}
}

static void writes(long n, const char *file)
{
	const char line[] = "epoch 3 step 1200 loss 0.4312 lr 1e-4\n";
	uint64_t began = now_ns();
	FILE *out;

	while (n-- > 0)
		write_all(line, sizeof line - 1);
	began = now_ns() - began;
	out = fopen(file, "w");
	if (!out || fprintf(out, "%llu\n", (unsigned long long)began) < 0 || fclose(out))
		fail(file);
}

static void stamps(long n, useconds_t pause)
{
	char line[32];

	while (n-- > 0) {
		usleep(pause);
		write_all(line, (size_t)sprintf(line, "%llu\n", (unsigned long long)now_ns()));
	}
}

static void ages(void)
{
	char got[4096];
	ssize_t n;

	while ((n = read(0, got, sizeof got - 1)) > 0) {
		uint64_t at = now_ns();

		got[n] = 0;
		for (char *line = strtok(got, "\n"); line; line = strtok(NULL, "\n"))
			printf("%llu\n", (unsigned long long)(at - strtoull(line, NULL, 10)));
	}
}

static uint64_t drain(int fd)
{
	static char got[BLOCK];
	uint64_t total = 0;
	ssize_t n;

	/* A terminal's first end may come before its last bytes; the second is one. */
	while ((n = read(fd, got, sizeof got)) > 0 || (n = read(fd, got, sizeof got)) > 0)
		total += (uint64_t)n;
	return total;
}

static int terminal(char **argv)
{
	struct winsize size = { 24, 80, 0, 0 };
	uint64_t total;
	int master, status;
	pid_t pid = forkpty(&master, NULL, NULL, &size);

	if (pid < 0)
		fail("forkpty");
	if (pid == 0) {
		execvp(argv[0], argv);
		fail(argv[0]);
	}
	total = drain(master);
	waitpid(pid, &status, 0);
	printf("%llu\n", (unsigned long long)total);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int main(int argc, char **argv)
{
	uint64_t began = now_ns();
	const char *what = argc > 1 ? argv[1] : "";

	if (!strcmp(what, "now"))
		printf("%llu\n", (unsigned long long)began);
	else if (!strcmp(what, "lines") && argc == 3)
		lines((size_t)atol(argv[2]));
	else if (!strcmp(what, "log") && argc == 3)
		log_lines((size_t)atol(argv[2]));
	else if (!strcmp(what, "writes") && argc == 4)
		writes(atol(argv[2]), argv[3]);
	else if (!strcmp(what, "stamps") && argc == 4)
		stamps(atol(argv[2]), (useconds_t)atol(argv[3]));
	else if (!strcmp(what, "ages"))
		ages();
	else if (!strcmp(what, "terminal") && argc > 2)
		return terminal(argv + 2);
	else
		return fprintf(stderr, "parts: see the head of parts.c\n"), 2;
	return 0;
}
