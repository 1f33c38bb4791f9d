/* See program.h. */

#include "lib/program.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "lib/places.h"

/* What the kernel follows (BINPRM: 5 files in all), and how much of a first line it reads. */
#define SCRIPTS_MAX 4
#define FIRST_LINE_BYTES 256
#define PROGRAM_HEADERS_MAX 512u
#define VERSIONS_BYTES_MAX 65536u
#define SECTIONS_MAX 256u

/* The interposer's symbols are of this version at most; the loader defines it from that release on. */
#define GLIBC_NEEDED "GLIBC_2.34"

/* What execvp gives files to that the kernel knows no way to execute. */
static const char shell[] = "/bin/sh";

/* ---- as execvp finds it ---- */

static bool is_runnable(const char *path)
{
	struct stat status;

	return stat(path, &status) == 0 && S_ISREG(status.st_mode) && access(path, X_OK) == 0;
}

static int command_find(const char *command, char ret_path[STASIS_LIB_PATH_BYTES],
			struct stasis_error *err)
{
	/* execvp's own default where there is no PATH. */
	const char *at = getenv("PATH"); /* NOLINT(concurrency-mt-unsafe) */
	const char *end;

	if (strchr(command, '/')) {
		(void)snprintf(ret_path, STASIS_LIB_PATH_BYTES, "%s", command);
		if (is_runnable(command))
			return 0;
		if (access(command, F_OK) == 0)
			errno = EACCES;
		return stasis_fail_errno(err, STASIS_REFUSED, "run '%s'", command);
	}
	for (at = at ? at : "/bin:/usr/bin";; at = end + 1) {
		end = strchrnul(at, ':');
		(void)snprintf(ret_path, STASIS_LIB_PATH_BYTES, "%.*s%s%s", (int)(end - at), at,
			       end == at ? "" : "/", command);
		if (*command != '\0' && is_runnable(ret_path))
			return 0;
		if (*end == '\0')
			return stasis_fail(err, STASIS_REFUSED, "run '%s': no such program in PATH",
					   command);
	}
}

/* ---- ELF ---- */

static int read_at(int fd, void *buffer, size_t bytes, uint64_t offset)
{
	return stasis_pread_all(fd, buffer, bytes, offset, "program.read");
}

static int header_check(int fd, const char *path, Elf64_Ehdr *ret_header, struct stasis_error *err)
{
	if (read_at(fd, ret_header, sizeof(*ret_header), 0) != 0 ||
	    memcmp(ret_header->e_ident, ELFMAG, SELFMAG) != 0)
		return stasis_fail(err, STASIS_REFUSED, "run '%s': it is no whole ELF file", path);
	if (ret_header->e_ident[EI_CLASS] != ELFCLASS64 || ret_header->e_machine != EM_X86_64)
		return stasis_fail(err, STASIS_REFUSED,
				   "run '%s': not a 64-bit x86-64 program; the interposer is for "
				   "those",
				   path);
	if (ret_header->e_phentsize != sizeof(Elf64_Phdr) || ret_header->e_phnum == 0 ||
	    ret_header->e_phnum > PROGRAM_HEADERS_MAX)
		return stasis_fail(err, STASIS_REFUSED, "run '%s': its program headers are damaged",
				   path);
	return 0;
}

/* The loader that the program asks for. */
static int loader_find(int fd, const char *path, char ret_loader[STASIS_LIB_PATH_BYTES],
		       struct stasis_error *err)
{
	Elf64_Ehdr header;
	Elf64_Phdr segment;

	if (header_check(fd, path, &header, err) != 0)
		return -1;
	for (uint32_t i = 0; i < header.e_phnum; i++) {
		if (read_at(fd, &segment, sizeof(segment), header.e_phoff + i * sizeof(segment)) !=
		    0)
			break;
		if (segment.p_type != PT_INTERP)
			continue;
		if (segment.p_filesz < 2 || segment.p_filesz >= STASIS_LIB_PATH_BYTES ||
		    read_at(fd, ret_loader, segment.p_filesz, segment.p_offset) != 0)
			break;
		ret_loader[segment.p_filesz] = '\0';
		return 0;
	}
	return stasis_fail(err, STASIS_REFUSED,
			   "run '%s': it is linked statically, so that nothing can be preloaded "
			   "into it; link it dynamically",
			   path);
}

/* Whether the names of versions that the loader defines hold this one. */
static bool section_names(int fd, const Elf64_Shdr *versions, const Elf64_Ehdr *header,
			  const char *name)
{
	CLEANUP(free) char *text = NULL;
	Elf64_Shdr strings;
	size_t name_bytes = strlen(name) + 1;

	if (versions->sh_link >= header->e_shnum ||
	    read_at(fd, &strings, sizeof(strings),
		    header->e_shoff + versions->sh_link * sizeof(strings)) != 0 ||
	    strings.sh_size > VERSIONS_BYTES_MAX)
		return false;
	text = malloc(strings.sh_size + 1);
	if (!text || read_at(fd, text, strings.sh_size, strings.sh_offset) != 0)
		return false;
	return memmem(text, strings.sh_size, name, name_bytes) != NULL;
}

static bool loader_has_version(const char *loader, const char *name)
{
	CLEANUP(fd) int fd = open(loader, O_RDONLY | O_CLOEXEC);
	Elf64_Ehdr header;
	Elf64_Shdr section;

	if (fd < 0 || header_check(fd, loader, &header, NULL) != 0 ||
	    header.e_shentsize != sizeof(section) || header.e_shnum > SECTIONS_MAX)
		return false;
	for (uint32_t i = 0; i < header.e_shnum; i++) {
		if (read_at(fd, &section, sizeof(section), header.e_shoff + i * sizeof(section)) !=
		    0)
			return false;
		if (section.sh_type == SHT_GNU_verdef)
			return section_names(fd, &section, &header, name);
	}
	return false;
}

static int loader_check(const char *path, const char *loader, struct stasis_error *err)
{
	const char *name = strrchr(loader, '/') ? strrchr(loader, '/') + 1 : loader;

	if (strncmp(name, "ld-linux", strlen("ld-linux")) != 0)
		return stasis_fail(err, STASIS_REFUSED,
				   "run '%s': its loader '%s' is not glibc's, and the interposer "
				   "needs glibc",
				   path, loader);
	if (access(loader, R_OK) != 0)
		return stasis_fail_errno(err, STASIS_REFUSED, "run '%s': its loader '%s'", path,
					 loader);
	if (!loader_has_version(loader, GLIBC_NEEDED))
		return stasis_fail(err, STASIS_REFUSED,
				   "run '%s': its glibc ('%s') is older than 2.34, which the "
				   "interposer needs",
				   path, loader);
	return 0;
}

/* ---- privileges ---- */

/* With these the loader ignores LD_PRELOAD. */
static int privileges_check(int fd, const char *path, struct stasis_error *err)
{
	struct stat status;

	if (fstat(fd, &status) != 0)
		return stasis_fail_errno(err, STASIS_REFUSED, "run '%s'", path);
	if (((status.st_mode & S_ISUID) && status.st_uid != getuid()) ||
	    ((status.st_mode & S_ISGID) && status.st_gid != getgid()))
		return stasis_fail(err, STASIS_REFUSED,
				   "run '%s': it is setuid or setgid, and the loader preloads "
				   "nothing into such programs; start it as its owner",
				   path);
	if (fgetxattr(fd, "security.capability", NULL, 0) > 0)
		return stasis_fail(err, STASIS_REFUSED,
				   "run '%s': it has file capabilities, and the loader preloads "
				   "nothing into such programs; take them away with setcap -r, or "
				   "give them to the caller",
				   path);
	return 0;
}

/* ---- scripts ---- */

enum kind {
	PROGRAM,
	SCRIPT, /* its first line names its interpreter */
	TEXT,   /* neither: the kernel refuses it with ENOEXEC, and execvp gives it to /bin/sh */
};

/*
 * "#!INTERPRETER ARGUMENT": false where the file begins otherwise, names none, or where the name is longer than what the
 * kernel reads.
 */
static bool interpreter_read(int fd, char ret_path[STASIS_LIB_PATH_BYTES])
{
	char line[FIRST_LINE_BYTES + 1];
	ssize_t bytes = pread(fd, line, FIRST_LINE_BYTES, 0);
	char *start;
	size_t name_bytes;

	if (bytes < 3 || line[0] != '#' || line[1] != '!')
		return false;
	line[bytes] = '\0';
	start = line + 2 + strspn(line + 2, " \t");
	name_bytes = strcspn(start, " \t\n");
	if (start + name_bytes == line + FIRST_LINE_BYTES)
		return false;
	start[name_bytes] = '\0';
	(void)snprintf(ret_path, STASIS_LIB_PATH_BYTES, "%s", start);
	return *start != '\0';
}

static bool is_elf(int fd)
{
	char magic[SELFMAG];

	return pread(fd, magic, SELFMAG, 0) == SELFMAG && memcmp(magic, ELFMAG, SELFMAG) == 0;
}

static int unreadable_refuse(const char *path, struct stasis_error *err)
{
	if (errno == EACCES)
		return stasis_fail(
			err, STASIS_REFUSED,
			"run '%s': it may be executed and not read, so that nobody can say "
			"whether the interposer would go with it, and nobody but root could "
			"trace it for a capture; make it readable",
			path);
	return stasis_fail_errno(err, STASIS_REFUSED,
				 "run '%s': look whether the interposer can go with it", path);
}

/* Of a SCRIPT, `path` is now that of its interpreter. */
static int file_check(char path[STASIS_LIB_PATH_BYTES], enum kind *ret_kind,
		      struct stasis_error *err)
{
	CLEANUP(fd) int fd = open(path, O_RDONLY | O_CLOEXEC);
	char found[STASIS_LIB_PATH_BYTES];

	if (fd < 0)
		return unreadable_refuse(path, err);
	if (interpreter_read(fd, found)) {
		/* The privileges of a script count for nothing. */
		memcpy(path, found, sizeof(found));
		*ret_kind = SCRIPT;
		return 0;
	}
	*ret_kind = is_elf(fd) ? PROGRAM : TEXT;
	if (*ret_kind == TEXT)
		return 0;
	if (privileges_check(fd, path, err) != 0 || loader_find(fd, path, found, err) != 0)
		return -1;
	return loader_check(path, found, err);
}

/* Follows interpreters; *ret_kind is PROGRAM or TEXT in the end. */
static int interpreters_check(const char *command, char path[STASIS_LIB_PATH_BYTES],
			      enum kind *ret_kind, struct stasis_error *err)
{
	*ret_kind = SCRIPT;
	for (int i = 0; i <= SCRIPTS_MAX && *ret_kind == SCRIPT; i++) {
		if (file_check(path, ret_kind, err) != 0)
			return -1;
	}
	if (*ret_kind == SCRIPT)
		return stasis_fail(err, STASIS_REFUSED,
				   "run '%s': its interpreters are scripts, one in another",
				   command);
	return 0;
}

int stasis_lib_program_check(const char *command, struct stasis_error *err)
{
	char path[STASIS_LIB_PATH_BYTES];
	enum kind kind;

	if (command_find(command, path, err) != 0 ||
	    interpreters_check(command, path, &kind, err) != 0)
		return -1;
	if (kind == PROGRAM)
		return 0;
	(void)snprintf(path, sizeof(path), "%s", shell);
	if (interpreters_check(command, path, &kind, err) != 0)
		return -1;
	if (kind != PROGRAM)
		return stasis_fail(err, STASIS_REFUSED,
				   "run '%s': it is left to '%s', which is no program", command,
				   shell);
	return 0;
}
