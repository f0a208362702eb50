/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* partition_type.c - what the common types of partitions are called. Names only: nothing depends on them. */
#include "config.h"

#include "cryptfuse/partition.h"

#include <strings.h>

static const struct {
	const char *type, *name;
} types[] = {
	{"0x01", "FAT12"},
	{"0x04", "FAT16"},
	{"0x05", "extended"},
	{"0x06", "FAT16"},
	{"0x07", "NTFS or exFAT"},
	{"0x0b", "FAT32"},
	{"0x0c", "FAT32"},
	{"0x0e", "FAT16"},
	{"0x0f", "extended"},
	{"0x27", "Windows recovery"},
	{"0x82", "Linux swap"},
	{"0x83", "Linux"},
	{"0x85", "extended"},
	{"0x8e", "Linux LVM"},
	{"0xa5", "FreeBSD"},
	{"0xa6", "OpenBSD"},
	{"0xa9", "NetBSD"},
	{"0xaf", "Apple HFS"},
	{"0xe8", "Linux LUKS"},
	{"0xef", "EFI System"},
	{"0xfd", "Linux RAID"},
	{"c12a7328-f81f-11d2-ba4b-00a0c93ec93b", "EFI System"},
	{"21686148-6449-6e6f-744e-656564454649", "BIOS boot"},
	{"e3c9e316-0b5c-4db8-817d-f92df00215ae", "Microsoft reserved"},
	{"ebd0a0a2-b9e5-4433-87c0-68b6b72699c7", "Microsoft basic data"},
	{"de94bba4-06d1-4d40-a16a-bfd50179d6ac", "Windows recovery"},
	{"0fc63daf-8483-4772-8e79-3d69d8477de4", "Linux filesystem"},
	{"4f68bce3-e8cd-4db1-96e7-fbcaf984b709", "Linux root (x86-64)"},
	{"b921b045-1df0-41c3-af44-4c6f280d3fae", "Linux root (ARM-64)"},
	{"bc13c2ff-59e6-4262-a352-b275fd6f7172", "Linux extended boot"},
	{"933ac7e1-2eb4-4f13-b844-0e14e2aef915", "Linux home"},
	{"3b8f8425-20e0-4f3b-907f-1a25a76f98e8", "Linux server data"},
	{"0657fd6d-a4ab-43c4-84e5-0933c84b4f4f", "Linux swap"},
	{"e6d6d379-f507-44c2-a23c-238f2a3df928", "Linux LVM"},
	{"a19d880f-05fc-4d3b-a006-743f0f84911e", "Linux RAID"},
	{"ca7d7ccb-63ed-4c53-861c-1742536059cc", "Linux LUKS"},
	{"7ffec5c9-2d00-49b7-8941-3ea10a5586b7", "Linux dm-crypt"},
	{"48465300-0000-11aa-aa11-00306543ecac", "Apple HFS+"},
	{"7c3457ef-0000-11aa-aa11-00306543ecac", "Apple APFS"},
	{"53746f72-6167-11aa-aa11-00306543ecac", "Apple Core Storage"},
	{"516e7cb4-6ecf-11d6-8ff8-00022d09712b", "FreeBSD"},
	{"6a898cc3-1dd2-11b2-99a6-080020736631", "ZFS"},
};

const char *cf_partition_type_name(const char *type)
{
	for (size_t i = 0; i < CF_ARRAY_LEN(types); i++)
		if (!strcasecmp(type, types[i].type))
			return types[i].name;
	return NULL;
}
