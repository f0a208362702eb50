/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* calls.h - the calls that can be made to fail, and how each can really fail. Included by failcall.c, more than once.
 *
 *   CALL(type, what it returns then, name, parameters, arguments, errno…)
 *   CODE(name, parameters, arguments, errno…)    returns the errno instead of setting it
 *   XFER(name, parameters, arguments, arguments for half of it, errno…)
 *   OWN(name, errno…)    with a variable number of arguments: written out in failcall.c */

/* Memory. */
CALL(void *, NULL, malloc, (size_t len), (len), ENOMEM)
CALL(void *, NULL, calloc, (size_t n, size_t len), (n, len), ENOMEM)
CALL(void *, NULL, realloc, (void *p, size_t len), (p, len), ENOMEM)
CALL(void *, NULL, aligned_alloc, (size_t align, size_t len), (align, len), ENOMEM)
CODE(posix_memalign, (void **p, size_t align, size_t len), (p, align, len), ENOMEM)
CALL(void *, MAP_FAILED, mmap64, (void *at, size_t len, int prot, int flags, int fd, off64_t off),
	 (at, len, prot, flags, fd, off), ENOMEM, EAGAIN)
CALL(int, -1, mprotect, (void *at, size_t len, int prot), (at, len, prot), ENOMEM)
CALL(int, -1, mlock, (const void *at, size_t len), (at, len), ENOMEM, EPERM, EAGAIN)
CALL(int, -1, madvise, (void *at, size_t len, int advice), (at, len, advice), EINVAL, ENOMEM)
CALL(int, -1, memfd_create, (const char *name, unsigned flags), (name, flags), EMFILE, ENOMEM, ENOSYS)

/* Files and folders. */
OWN(open64, EMFILE, EACCES, EINTR, EIO, ENOMEM)
OWN(openat64, EMFILE, EACCES, ENOSPC, EINTR, EIO)
CALL(int, -1, __open64_2, (const char *path, int flags), (path, flags), EMFILE, EACCES, EINTR, EIO, ENOMEM)
CALL(FILE *, NULL, fopen64, (const char *path, const char *mode), (path, mode), EMFILE, ENOMEM)
CALL(DIR *, NULL, opendir, (const char *path), (path), EMFILE, EACCES, ENOMEM)
CALL(struct dirent64 *, NULL, readdir64, (DIR * dir), (dir), EIO)
CALL(int, -1, stat64, (const char *path, struct stat64 *st), (path, st), EIO, EACCES)
CALL(int, -1, lstat64, (const char *path, struct stat64 *st), (path, st), EIO, EACCES)
CALL(int, -1, fstat64, (int fd, struct stat64 *st), (fd, st), EIO)
CALL(int, -1, fstatfs64, (int fd, struct statfs64 *st), (fd, st), EIO)
CALL(int, -1, fstatvfs64, (int fd, struct statvfs64 *st), (fd, st), EIO)
CALL(int, -1, statvfs64, (const char *path, struct statvfs64 *st), (path, st), EIO, EACCES)
CALL(int, -1, fallocate64, (int fd, int mode, off64_t off, off64_t len), (fd, mode, off, len), ENOSPC, EOPNOTSUPP,
	 EINTR, EIO)
CALL(int, -1, ftruncate64, (int fd, off64_t len), (fd, len), EFBIG, ENOSPC, EIO)
CALL(off64_t, -1, lseek64, (int fd, off64_t off, int whence), (fd, off, whence), EIO)
CALL(int, -1, flock, (int fd, int how), (fd, how), ENOLCK, EINTR)
OWN(fcntl64, EINVAL, ENOLCK, EAGAIN)
OWN(ioctl, ENOTTY, EIO)
CALL(int, -1, dup2, (int from, int to), (from, to), EMFILE)
CALL(int, -1, close_range, (unsigned from, unsigned to, int flags), (from, to, flags), ENOSYS)
CALL(int, -1, mkdir, (const char *path, mode_t mode), (path, mode), ENOSPC, EACCES)
CALL(char *, NULL, mkdtemp, (char *path), (path), ENOSPC, EACCES)
CALL(int, -1, symlink, (const char *to, const char *path), (to, path), ENOSPC, EIO)
CALL(int, -1, linkat, (int from_dir, const char *from, int dir, const char *to, int flags),
	 (from_dir, from, dir, to, flags), ENOSPC, EPERM, EIO)
CALL(int, -1, renameat2, (int from_dir, const char *from, int dir, const char *to, unsigned flags),
	 (from_dir, from, dir, to, flags), ENOSPC, EINVAL, EIO)
CALL(char *, NULL, realpath, (const char *path, char *out), (path, out), EACCES, ENOMEM)
CALL(ssize_t, -1, readlink, (const char *path, char *out, size_t len), (path, out, len), EACCES, EIO)
CALL(int, -1, chdir, (const char *path), (path), EACCES)
CALL(ssize_t, -1, getxattr, (const char *path, const char *name, void *out, size_t len), (path, name, out, len), EIO,
	 ENOMEM)

/* Bytes. */
XFER(pread64, (int fd, void *buf, size_t len, off64_t off), (fd, buf, len, off), (fd, buf, len / 2, off), EIO,
	 FAILCALL_SHORT, EINTR, ENOMEM)
XFER(pwrite64, (int fd, const void *buf, size_t len, off64_t off), (fd, buf, len, off), (fd, buf, len / 2, off), EIO,
	 FAILCALL_SHORT, ENOSPC, EINTR, EDQUOT)
XFER(read, (int fd, void *buf, size_t len), (fd, buf, len), (fd, buf, (len + 1) / 2), EINTR, EIO, FAILCALL_SHORT)
XFER(write, (int fd, const void *buf, size_t len), (fd, buf, len), (fd, buf, (len + 1) / 2), EINTR, EIO, ENOSPC,
	 FAILCALL_SHORT)
OWN(writev, ENOENT)
CALL(int, -1, fdatasync, (int fd), (fd), EIO, ENOSPC)
CALL(int, -1, fsync, (int fd), (fd), EIO, ENOSPC)
CALL(ssize_t, -1, getrandom, (void *buf, size_t len, unsigned flags), (buf, len, flags), EINTR, ENOSYS)

/* Between processes. */
CALL(int, -1, socketpair, (int domain, int type, int protocol, int fds[2]), (domain, type, protocol, fds), EMFILE,
	 ENOMEM)
CALL(int, -1, socket, (int domain, int type, int protocol), (domain, type, protocol), EAFNOSUPPORT, EMFILE, ENOMEM)
CALL(int, -1, bind, (int fd, const struct sockaddr *at, socklen_t len), (fd, at, len), ENOENT, EADDRINUSE, ENOMEM)
CALL(int, -1, listen, (int fd, int n), (fd, n), EADDRINUSE)
CALL(int, -1, connect, (int fd, const struct sockaddr *at, socklen_t len), (fd, at, len), ECONNREFUSED, EAGAIN)
CALL(int, -1, accept4, (int fd, struct sockaddr *at, socklen_t *len, int flags), (fd, at, len, flags), EMFILE, ENOMEM,
	 EINTR, ECONNABORTED)
CALL(int, -1, setsockopt, (int fd, int level, int name, const void *value, socklen_t len),
	 (fd, level, name, value, len), ENOMEM)
CALL(ssize_t, -1, send, (int fd, const void *buf, size_t len, int flags), (fd, buf, len, flags), ENOBUFS, EINTR, ENOMEM,
	 EPIPE)
CALL(ssize_t, -1, sendmsg, (int fd, const struct msghdr *m, int flags), (fd, m, flags), ENOBUFS, EINTR, ETOOMANYREFS,
	 EPIPE)
CALL(ssize_t, -1, recv, (int fd, void *buf, size_t len, int flags), (fd, buf, len, flags), EINTR, ENOMEM, ECONNRESET)
CALL(ssize_t, -1, recvmsg, (int fd, struct msghdr *m, int flags), (fd, m, flags), EINTR, ENOMEM, ECONNRESET)
CALL(int, -1, pipe, (int fds[2]), (fds), EMFILE)
CALL(int, -1, pipe2, (int fds[2], int flags), (fds, flags), EMFILE)
CALL(int, -1, poll, (struct pollfd * p, nfds_t n, int ms), (p, n, ms), EINTR)
CALL(pid_t, -1, waitpid, (pid_t pid, int *status, int options), (pid, status, options), EINTR)
CALL(int, -1, signalfd, (int fd, const sigset_t *set, int flags), (fd, set, flags), EMFILE, ENOMEM)
CODE(posix_spawn,
	 (pid_t * pid, const char *path, const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *attributes,
	  char *const argv[], char *const envp[]),
	 (pid, path, actions, attributes, argv, envp), EAGAIN, ENOMEM, ENOENT)
CODE(posix_spawnp,
	 (pid_t * pid, const char *path, const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *attributes,
	  char *const argv[], char *const envp[]),
	 (pid, path, actions, attributes, argv, envp), EAGAIN, ENOMEM, ENOENT)
CODE(pthread_create, (pthread_t * id, const pthread_attr_t *attributes, void *(*main)(void *), void *arg),
	 (id, attributes, main, arg), EAGAIN)
OWN(fork, EAGAIN, ENOMEM)
OWN(prctl, EINVAL)
OWN(syscall, ENOSYS, EMFILE, ENOMEM)
CALL(int, -1, sem_wait, (sem_t * sem), (sem), EINTR)
CALL(int, -1, sem_clockwait, (sem_t * sem, clockid_t clock, const struct timespec *until), (sem, clock, until), EINTR)
CALL(int, -1, nanosleep, (const struct timespec *for_, struct timespec *left), (for_, left), EINTR)
CALL(int, -1, sched_getaffinity, (pid_t pid, size_t len, cpu_set_t *set), (pid, len, set), EINVAL)

/* Engines, and what the other libraries begin with. */
CALL(OSSL_LIB_CTX *, NULL, OSSL_LIB_CTX_new, (void), (), ENOMEM)
CALL(OSSL_PROVIDER *, NULL, OSSL_PROVIDER_load, (OSSL_LIB_CTX * ctx, const char *name), (ctx, name), ENOENT)
CALL(EVP_CIPHER *, NULL, EVP_CIPHER_fetch, (OSSL_LIB_CTX * ctx, const char *name, const char *properties),
	 (ctx, name, properties), ENOMEM)
CALL(EVP_CIPHER_CTX *, NULL, EVP_CIPHER_CTX_new, (void), (), ENOMEM)
CALL(int, 0, EVP_CipherInit_ex2,
	 (EVP_CIPHER_CTX * ctx, const EVP_CIPHER *cipher, const unsigned char *key, const unsigned char *iv, int encrypt,
	  const OSSL_PARAM params[]),
	 (ctx, cipher, key, iv, encrypt, params), ENOMEM)
CALL(int, 0, EVP_CipherUpdate,
	 (EVP_CIPHER_CTX * ctx, unsigned char *out, int *out_len, const unsigned char *in, int len),
	 (ctx, out, out_len, in, len), EIO)
CALL(EVP_MD *, NULL, EVP_MD_fetch, (OSSL_LIB_CTX * ctx, const char *name, const char *properties),
	 (ctx, name, properties), ENOMEM)
CALL(EVP_MD_CTX *, NULL, EVP_MD_CTX_new, (void), (), ENOMEM)
CALL(int, 0, EVP_DigestInit_ex2, (EVP_MD_CTX * ctx, const EVP_MD *md, const OSSL_PARAM params[]), (ctx, md, params),
	 ENOMEM)
CALL(int, 0, EVP_DigestUpdate, (EVP_MD_CTX * ctx, const void *data, size_t len), (ctx, data, len), EIO)
CALL(int, 0, EVP_DigestFinal_ex, (EVP_MD_CTX * ctx, unsigned char *out, unsigned *len), (ctx, out, len), EIO)
CALL(gcry_error_t, GPG_ERR_ENOMEM, gcry_cipher_open, (gcry_cipher_hd_t * h, int algo, int mode, unsigned flags),
	 (h, algo, mode, flags), ENOMEM)
CALL(gcry_error_t, GPG_ERR_ENOMEM, gcry_cipher_setkey, (gcry_cipher_hd_t h, const void *key, size_t len), (h, key, len),
	 ENOMEM)
CALL(gcry_error_t, GPG_ERR_INTERNAL, gcry_cipher_encrypt,
	 (gcry_cipher_hd_t h, void *out, size_t out_len, const void *in, size_t in_len), (h, out, out_len, in, in_len), EIO)
CALL(gcry_error_t, GPG_ERR_INTERNAL, gcry_cipher_decrypt,
	 (gcry_cipher_hd_t h, void *out, size_t out_len, const void *in, size_t in_len), (h, out, out_len, in, in_len), EIO)
CALL(blkid_probe, NULL, blkid_new_probe, (void), (), ENOMEM)
CALL(int, -1, blkid_do_safeprobe, (blkid_probe p), (p), EIO)
CODE_NEGATIVE(crypt_init, (struct crypt_device * *cd, const char *device), (cd, device), ENOMEM)
CODE_NEGATIVE(crypt_load, (struct crypt_device * cd, const char *type, void *params), (cd, type, params), ENOMEM)
CALL(int, -1, fuse_session_mount, (struct fuse_session * se, const char *mountpoint), (se, mountpoint), EPERM)
